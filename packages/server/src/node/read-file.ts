import { SandlotError } from '@sandlot/protocol'
import { GuestError } from '@sandlot/runtime'
import type { Lent } from './lend.ts'
import type { ReadFileRequest } from './port.ts'

/** A file of moderate size, whole. What stands in its place is the workload's, so that nothing of it is believed but its bytes. */
export async function readFile(
  lent: Lent,
  { world = 'main', path, bytesMax }: ReadFileRequest,
  wait: { readonly signal: AbortSignal },
): Promise<Uint8Array | undefined> {
  try {
    const range = { length: bytesMax + 1 }
    const file = await lent.guest.files.read(world, path, range, wait)
    const chunks: Uint8Array[] = []
    let sizeBytes = 0
    for await (const chunk of file.content) {
      chunks.push(chunk)
      sizeBytes += chunk.length
    }
    if (sizeBytes <= bytesMax) return Buffer.concat(chunks)
    throw new SandlotError('too_large', `${path} has more than ${bytesMax} bytes`)
  } catch (error) {
    if (error instanceof GuestError && error.code === 'not_found') return undefined
    throw await lent.explain(error)
  }
}
