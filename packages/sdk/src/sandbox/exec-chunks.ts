import { newTextDecoder } from './bytes.ts'
import type { ExecLife } from './exec-life.ts'
import type { ExecChunk } from './exec-result.ts'

/** The output of a command with its text, over all connections that it takes. Leaving early lets the command run on unread. */
export async function* readChunks(life: ExecLife): AsyncGenerator<ExecChunk> {
  const decoders = { stdout: newTextDecoder(), stderr: newTextDecoder() }
  const ends = { stdout: 0, stderr: 0 }
  let leg = await life.first.promise
  let isRead = false
  try {
    for (; leg; leg = await leg.next.promise) {
      try {
        for await (const piece of leg.output.pieces()) {
          const decoder = decoders[piece.channel]
          ends[piece.channel] = piece.offset + piece.bytes.length
          // A character that was cut by a gap has no other half.
          const broken = piece.droppedBytes > 0 ? decoder.decode() : ''
          yield { ...piece, text: broken + decoder.decode(piece.bytes, { stream: true }) }
        }
      } catch {
        // Whether there is another leg, the life says.
      }
    }
    isRead = true
    for (const channel of ['stdout', 'stderr'] as const) {
      const text = decoders[channel].decode()
      const offset = ends[channel]
      if (text !== '') yield { channel, bytes: NOTHING, offset, droppedBytes: 0, text }
    }
  } finally {
    if (!isRead) discardRest(leg)
  }
}

const NOTHING = new Uint8Array(0)

/** The reader left: the command goes on unread, over whatever connections it takes. */
async function discardRest(from: Awaited<ExecLife['first']['promise']>): Promise<void> {
  try {
    for (let leg = from; leg; leg = await leg.next.promise) leg.output.discard()
  } catch {
    // What it came to, `result` says.
  }
}
