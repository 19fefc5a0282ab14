import type { AgentExec } from './agent-exec.ts'
import type { AgentExecs } from './agent-execs.ts'
import type { ExecHandle, ExecOutcome, ExecRunSpec, GuestBytes, GuestWait } from './guest.ts'
import { GuestError, GuestLost, GuestTimeout } from './guest-error.ts'
import { GUEST_LIMITS } from './limits.ts'
import type { GuestLink } from './link.ts'

const KEPT_BYTES_DEFAULT = 512 * 1_024
const SIGKILL = 9

/** `GuestExecs.run`: a buffered exec from its start to its end. */
export async function runBuffered(
  link: GuestLink,
  execs: AgentExecs,
  spec: ExecRunSpec,
  wait: GuestWait,
): Promise<ExecOutcome> {
  const { stdin, keep = false, ...rest } = spec
  const { signal } = wait
  const handle = execs.startReading(
    { ...rest, mode: 'buffered', stdin: stdin !== undefined, forget: !keep },
    signal ? { signal } : {},
  )
  const timer = backstop(handle, spec, wait.timeoutMs)
  try {
    if (stdin !== undefined) void feed(handle, stdin)
    const output = await collect(link, handle, spec)
    return { ...(await handle.result), ...output }
  } catch (error) {
    if (mayRun(error)) execs.kill(spec.exec, SIGKILL).catch(ignore)
    throw error
  } finally {
    clearTimeout(timer)
  }
}

/** Bytes of one channel as they come, never more than the agent was asked to keep. */
class Kept {
  readonly #parts: Uint8Array[] = []
  readonly #bytesMax: number
  #length = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** False: more than was asked for. */
  add(bytes: Uint8Array): boolean {
    this.#length += bytes.length
    this.#parts.push(bytes)
    return this.#length <= this.#bytesMax
  }

  join(): Uint8Array {
    const [only] = this.#parts
    if (only && this.#parts.length === 1) return only
    const bytes = new Uint8Array(this.#length)
    let at = 0
    for (const part of this.#parts) {
      bytes.set(part, at)
      at += part.length
    }
    return bytes
  }
}

async function collect(
  link: GuestLink,
  handle: ExecHandle,
  spec: ExecRunSpec,
): Promise<{ stdout: Uint8Array; stderr: Uint8Array }> {
  const { headBytes = KEPT_BYTES_DEFAULT, tailBytes = KEPT_BYTES_DEFAULT } = spec
  const kept = {
    stdout: new Kept(headBytes + tailBytes),
    stderr: new Kept(headBytes + tailBytes),
  }
  for await (const { channel, bytes } of handle.output) {
    if (!kept[channel].add(bytes)) throw link.breach('more output than it was asked to keep')
  }
  return { stdout: kept.stdout.join(), stderr: kept.stderr.join() }
}

async function feed(handle: AgentExec, content: GuestBytes): Promise<void> {
  try {
    if (content instanceof Uint8Array) await handle.stdin.write(content)
    else {
      for await (const bytes of content) {
        if (!(await handle.stdin.write(bytes))) return
      }
    }
    handle.stdin.end()
  } catch (error) {
    handle.abort(error)
  }
}

/** The host's own deadline, in case the agent does not keep the command's. */
function backstop(
  handle: AgentExec,
  spec: ExecRunSpec,
  timeoutMs = spec.timeoutMs === undefined ? undefined : spec.timeoutMs + GUEST_LIMITS.execGraceMs,
): NodeJS.Timeout | undefined {
  if (timeoutMs === undefined) return undefined
  return setTimeout(() => handle.abort(new GuestTimeout('exec.run', timeoutMs)), timeoutMs)
}

/** Whether the command may still run after this failure: the agent never answered for it. */
function mayRun(error: unknown): boolean {
  return !(error instanceof GuestError || error instanceof GuestLost)
}

function ignore(): void {}
