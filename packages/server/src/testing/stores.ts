import { openSqliteEngine } from '@sandlot/engine'
import { openImageStore } from '@sandlot/runtime'
import { testDirectories } from './daemon.ts'
import { smallTar } from './tar.ts'

/** An engine and an image store with one image, in a directory of their own; gone with the stack. */
export async function openStores(stack: AsyncDisposableStack) {
  const { dataDirectory: directory } = stack.use(await testDirectories())
  const engine = stack.use(await openSqliteEngine({ directory: `${directory}/engine` }))
  const tar = await engine.blobs.put(smallTar('a', 'b'))
  const openBlob = async () => (await engine.blobs.open(tar.digest)).body
  const images = stack.use(await openImageStore({ directory: `${directory}/images`, openBlob }))
  const image = await images.build({ kind: 'tar', blob: tar.digest })
  return { directory, engine, images, image }
}
