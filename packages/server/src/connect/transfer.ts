import { type MuxStream, type PayloadMap, releasePayload } from '@sandlot/protocol/frames'
import type { Lent } from '../node/lend.ts'
import type { Session } from './session.ts'

/** Towards the sandbox, and out of it. */
export const INPUT = 0
export const OUTPUT = 1

/** Lends the sandbox of a transfer for its time; its failures are told in the catalogue's words. */
export async function transfer(
  stream: MuxStream,
  request: { readonly sandbox: string },
  { node, caller }: Session,
  work: (lent: Lent, signal: AbortSignal) => Promise<PayloadMap>,
): Promise<PayloadMap> {
  const { signal } = stream
  using lent = await node.sandboxes.lend(request.sandbox, { project: caller.project, signal })
  try {
    return await work(lent, signal)
  } catch (error) {
    if (signal.aborted) throw error
    throw await lent.explain(error)
  }
}

/** Sends all of it, as fast as the client takes it. */
export async function sendAll(stream: MuxStream, bytes: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const chunk of bytes) {
    await stream.send(OUTPUT, chunk)
    releasePayload(chunk)
  }
  stream.end(OUTPUT)
}
