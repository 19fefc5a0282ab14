import { SandlotError } from '@sandlot/protocol'
import { GuestError } from '@sandlot/runtime'
import type { Lent } from './lend.ts'
import type { PassFilesRequest } from './port-worlds.ts'

/** Copies files and directories of `main` into another world. Links are followed only as far as each path itself. */
export async function passFiles(
  lent: Lent,
  { world, paths }: Pick<PassFilesRequest, 'world' | 'paths'>,
  wait: { readonly signal: AbortSignal },
): Promise<void> {
  for (const path of paths) {
    try {
      await pass(lent, world, path, wait)
    } catch (error) {
      if (error instanceof GuestError && error.code === 'not_found') continue
      throw unpackable(path, error) ?? (await lent.explain(error))
    }
  }
}

/** Such as a device among the files: the doing of whoever left it there. */
function unpackable(path: string, error: unknown): SandlotError | undefined {
  if (!(error instanceof GuestError && error.code === 'invalid')) return undefined
  const message = `${path} can't be passed on: ${error.message}`
  return new SandlotError('file_failed', message, { cause: error })
}

async function pass(
  { guest }: Lent,
  world: string,
  path: string,
  wait: { readonly signal: AbortSignal },
): Promise<void> {
  const { kind } = await guest.files.stat('main', path, { follow: true }, wait)
  if (kind === 'directory') {
    await guest.tar.in(world, path, guest.tar.out('main', path, wait), {}, wait)
    return
  }
  const { stat, content } = await guest.files.read('main', path, {}, wait)
  await guest.files.write(world, path, content, { mode: stat.mode, parents: true }, wait)
}
