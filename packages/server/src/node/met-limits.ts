import type { ExecLimit } from '@sandlot/protocol'
import type { ExecResult } from '@sandlot/runtime'
import type { Lent } from './lend.ts'

/** So long was a command held up by the processor limit before it is worth a word, and so large a part of its own time. */
const HELD_UP_MS = 100
const HELD_UP_SHARE = 0.1

/** Looks at the limits of a sandbox from now until a command ends, which it then tells. */
export async function watchLimits(
  lent: Pick<Lent, 'heldUpMs'>,
): Promise<(result: ExecResult) => Promise<readonly ExecLimit[]>> {
  const heldUpMs = () => lent.heldUpMs().catch(() => 0)
  const beforeMs = await heldUpMs()
  return async (result) => {
    const forMs = (await heldUpMs()) - beforeMs
    const isHeldUp = forMs >= HELD_UP_MS && forMs >= (result.durationUs / 1_000) * HELD_UP_SHARE
    return metLimits(result, isHeldUp)
  }
}

/** What a result says by itself; that it was held up can be told only by whoever was there when it began. */
export function metLimits(
  { timedOut, counts: { stdout, stderr }, limits }: ExecResult,
  isHeldUp = false,
): readonly ExecLimit[] {
  return [
    ...(timedOut ? (['time'] as const) : []),
    ...(stdout.droppedBytes + stderr.droppedBytes > 0 ? (['output'] as const) : []),
    ...limits,
    ...(isHeldUp ? (['cpu'] as const) : []),
  ]
}
