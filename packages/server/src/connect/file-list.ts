import { encodePayload } from '@sandlot/protocol/frames'
import type { GuestFileEntry } from '@sandlot/runtime'
import { sandboxPathOf } from './sandbox-path.ts'
import type { Operation } from './session.ts'
import { sendAll, transfer } from './transfer.ts'

const CHUNK_BYTES = 32 * 2 ** 10

/** Entries of a directory, as MessagePack maps one after another. */
export const fileList: Operation<'file.list'> = (stream, request, session) =>
  transfer(stream, request, session, async ({ guest, workdir }, signal) => {
    const { world = 'main', path } = request
    const counted = { count: 0 }
    const entries = guest.files.list(world, sandboxPathOf(workdir, path), { signal })
    await sendAll(stream, encoded(entries, counted))
    return counted
  })

/** Several entries a chunk. */
async function* encoded(
  entries: AsyncIterable<GuestFileEntry>,
  counted: { count: number },
): AsyncGenerator<Uint8Array> {
  let chunks: Uint8Array[] = []
  let sizeBytes = 0
  for await (const { name, kind, sizeBytes: size, mode, mtimeMs } of entries) {
    const bytes = encodePayload({ name, kind, sizeBytes: size, mode, mtimeMs }).slice()
    counted.count += 1
    chunks.push(bytes)
    sizeBytes += bytes.length
    if (sizeBytes < CHUNK_BYTES) continue
    yield Buffer.concat(chunks)
    chunks = []
    sizeBytes = 0
  }
  if (sizeBytes > 0) yield Buffer.concat(chunks)
}
