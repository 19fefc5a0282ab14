import type { ExecEnd, ExecLimit } from '@sandlot/protocol'
import { type MuxStream, releasePayload } from '@sandlot/protocol/frames'
import type { ExecHandle, ExecOffsets, ExecResult } from '@sandlot/runtime'
import { metLimits } from '../node/met-limits.ts'

export const STDIN = 0
export const STDOUT = 1
export const STDERR = 2

/**
 * Joins a client's stream to a command: output goes as fast as the client takes it, so a slow client slows its own command and
 * nothing else. Aborting the stream's signal detaches; the command goes on.
 */
export async function bridgeExec(
  stream: MuxStream,
  handle: ExecHandle,
  options: {
    readonly stdin: boolean
    readonly from: ExecOffsets
    readonly attached: boolean
    /** Tells the limits that it has met. Default: those that its result knows of. */
    readonly met?: (result: ExecResult) => Promise<readonly ExecLimit[]>
  },
): Promise<ExecEnd & { readonly keptBytes: number }> {
  handle.result.catch(() => {})
  const { pid } = await handle.started
  stream.event({ kind: 'started', pid })
  if (options.stdin) void feed(stream, handle)
  const keptBytes = await forward(stream, handle, options)
  const result = await handle.result
  const limits = options.met ? await options.met(result) : metLimits(result)
  return { ...execEndOf(handle.exec, result), limits, keptBytes }
}

async function forward(
  stream: MuxStream,
  handle: ExecHandle,
  { from, attached }: { readonly from: ExecOffsets; readonly attached: boolean },
): Promise<number> {
  const next = { stdout: from.stdoutFrom, stderr: from.stderrFrom }
  const told = { stdout: !attached, stderr: !attached }
  let sentBytes = 0
  for await (const { channel, bytes, offset } of handle.output) {
    const number = channel === 'stdout' ? STDOUT : STDERR
    if (!told[channel] || offset !== next[channel]) {
      const droppedBytes = Math.max(0, offset - next[channel])
      stream.event({ kind: 'offset', channel: number, offset, droppedBytes })
      told[channel] = true
    }
    next[channel] = offset + bytes.length
    sentBytes += bytes.length
    await stream.send(number, bytes)
    releasePayload(bytes)
  }
  return sentBytes
}

/** Says when all of stdin was handed over: a client that is lost before can't send the rest again. */
async function feed(stream: MuxStream, handle: ExecHandle): Promise<void> {
  try {
    for await (const bytes of stream.read(STDIN)) if (!(await handle.stdin.write(bytes))) break
    handle.stdin.end()
    stream.event({ kind: 'stdin' })
  } catch {
    // The client or the command is gone: the result says which.
  }
}

function execEndOf(exec: string, result: ExecResult): Omit<ExecEnd, 'limits'> {
  return {
    exec,
    exitCode: result.exitCode ?? null,
    signal: result.signal ?? null,
    timedOut: result.timedOut,
    killed: result.killed,
    durationMs: result.durationUs / 1_000,
    stdout: result.counts.stdout,
    stderr: result.counts.stderr,
    left: result.left,
  }
}
