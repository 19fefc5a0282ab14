/** A root file system in one tar becomes an image of one layer. */
import { join } from 'node:path'
import { decompressed, verifiedBlob } from './blob-stream.ts'
import type { BuildContext, BuiltImage } from './build.ts'
import { defaultImageConfig } from './image.ts'
import type { SourceOf } from './source.ts'
import { writeTarLayer } from './tar-layer.ts'

/** Everything in a `directory` belongs to root: owners on the client's machine mean nothing here. */
export async function buildTarImage(
  source: SourceOf<'tar' | 'directory'>,
  context: BuildContext,
): Promise<BuiltImage> {
  const path = join(context.directory, '0.erofs')
  const stream = decompressed(verifiedBlob(source.blob, context.openBlob, context.signal))
  const { digest, sizeBytes } = await writeTarLayer(stream, {
    path,
    allRoot: source.kind === 'directory',
    onLog: context.log,
  })
  return { layers: [{ path, digest, sizeBytes }], config: defaultImageConfig }
}
