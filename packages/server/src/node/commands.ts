import { getSystemErrorName } from 'node:util'
import { SandlotError, startProblem } from '@sandlot/protocol'
import {
  type ExecHandle,
  type ExecResult,
  type ExecRunSpec,
  GuestError,
  type GuestErrorCode,
} from '@sandlot/runtime'
import { HeadTail } from './head-tail.ts'
import type { Lent } from './lend.ts'
import { metLimits, watchLimits } from './met-limits.ts'
import type { NodeExecEnd, NodeExecRequest, NodeWait } from './port.ts'

interface HowRun {
  /** The agent remembers it after its end, so that asking again finds it. */
  readonly keep: boolean
  /** Aborted: it is not begun any more. What has begun goes on. */
  readonly unless?: AbortSignal
}

/**
 * Runs commands to their end, each id at most once. The command lives in the agent: whoever asks again, also after a restart, waits
 * for the same one, as long as the agent remembers it.
 */
export class Commands {
  readonly #underWay = new Map<string, Promise<NodeExecEnd>>()
  readonly #kept = new Map<string, Kept[]>()

  run(lent: Lent, request: NodeExecRequest, how: HowRun): Promise<NodeExecEnd> {
    const name = `${lent.id}/${request.exec}`
    const before = this.#underWay.get(name)
    if (before) return before
    const running = this.#run(lent, request, how).finally(() => this.#underWay.delete(name))
    this.#underWay.set(name, running)
    return running
  }

  /** The sandbox is gone. */
  forget(sandbox: string): void {
    this.#kept.delete(sandbox)
  }

  /** The commands that the agent knows. */
  async known(lent: Lent, wait: NodeWait = {}): Promise<ReadonlySet<string>> {
    try {
      return new Set((await lent.guest.exec.list(wait)).map(({ exec }) => exec))
    } catch (error) {
      throw await lent.explain(error)
    }
  }

  async kill(
    lent: Lent,
    { exec, signal = 9 }: { readonly exec: string; readonly signal?: number },
    wait: NodeWait = {},
  ): Promise<{ readonly processes: number }> {
    try {
      return await lent.guest.exec.kill(exec, signal, wait)
    } catch (error) {
      throw await lent.explain(error)
    }
  }

  async #run(lent: Lent, request: NodeExecRequest, { keep, unless }: HowRun): Promise<NodeExecEnd> {
    const { exec } = request
    let end: NodeExecEnd
    try {
      const met = await watchLimits(lent)
      unless?.throwIfAborted()
      const outcome = await lent.guest.exec.run({ ...execSpec(lent, request), keep })
      end = { ...endOf(exec, outcome, outcome.stdout, outcome.stderr), limits: await met(outcome) }
    } catch (error) {
      if (!(error instanceof GuestError) || error.code !== 'exec_exists') {
        throw execError(error) ?? (await lent.explain(error))
      }
      end = await this.#find(lent, exec)
    }
    if (keep) this.keep(lent, { exec, sizeBytes: end.stdout.length + end.stderr.length })
    return end
  }

  async #find(lent: Lent, exec: string): Promise<NodeExecEnd> {
    try {
      const handle = lent.guest.exec.attach(exec, { stdoutFrom: 0, stderrFrom: 0 })
      const { stdout, stderr } = await collect(handle)
      const end = endOf(exec, await handle.result, stdout.bytes(), stderr.bytes())
      return {
        ...end,
        stdoutDroppedBytes: end.stdoutTotalBytes - end.stdout.length,
        stderrDroppedBytes: end.stderrTotalBytes - end.stderr.length,
      }
    } catch (error) {
      throw await lent.explain(error)
    }
  }

  /** A command has ended and is still known to the agent, whose rings are few: it is told to forget the oldest. */
  keep(lent: Lent, kept: Kept): void {
    const all = (this.#kept.get(lent.id) ?? []).filter(({ exec }) => exec !== kept.exec)
    all.push(kept)
    this.#kept.set(lent.id, all)
    const size = () => all.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
    while (all.length > KEPT_EXECS || (all.length > 1 && size() > KEPT_BYTES)) {
      const oldest = all.shift() as Kept
      lent.guest.exec.forget(oldest.exec).catch(() => {})
    }
  }
}

export interface Kept {
  readonly exec: string
  /** Of its output. */
  readonly sizeBytes: number
}

const KEPT_EXECS = 16
const KEPT_BYTES = 2 ** 20

/**
 * A command as the guest takes it: the sandbox's environment, working directory and user where it has none of its own.
 * @throws SandlotError `too_large`
 */
export function execSpec(
  lent: Pick<Lent, 'env' | 'workdir' | 'user'>,
  request: Omit<NodeExecRequest, 'sandbox'>,
): Omit<ExecRunSpec, 'keep'> {
  const env = Object.entries({ ...lent.env, ...request.env })
  checkSize(request.argv, env)
  return {
    world: request.world ?? 'main',
    exec: request.exec,
    argv: request.argv,
    env,
    cwd: resolvePath(lent.workdir, request.cwd),
    user: request.user ?? lent.user,
    ...(request.stdin ? { stdin: request.stdin } : {}),
    ...(request.timeoutMs === undefined ? {} : { timeoutMs: request.timeoutMs }),
    ...(request.headBytes === undefined ? {} : { headBytes: request.headBytes }),
    ...(request.tailBytes === undefined ? {} : { tailBytes: request.tailBytes }),
  }
}

function checkSize(argv: readonly string[], env: readonly [string, string][]): void {
  const problem = startProblem(argv, env, ", the sandbox's included")
  if (problem === undefined) return
  throw new SandlotError('too_large', problem, {
    hint: 'Write what is long to a file in the sandbox, and give its path to the command.',
  })
}

/** A path below the working directory, or absolute as it is. */
export function resolvePath(workdir: string, path: string | undefined): string {
  if (path === undefined || path === '') return workdir
  if (path.startsWith('/')) return path
  return `${workdir.replace(/\/+$/, '')}/${path}`
}

const START_FAILURES: ReadonlySet<GuestErrorCode> = new Set([
  'not_found',
  'not_directory',
  'is_directory',
  'not_file',
  'permission',
  'invalid',
  'io',
  'too_large',
  'world_not_open',
])

/** A start that failed, as its own error; undefined where it is something else. */
export function execError(error: unknown): SandlotError | undefined {
  if (!(error instanceof GuestError) || !START_FAILURES.has(error.code)) return undefined
  const why = error.code === 'world_not_open' ? WORLD_ENDED : error.message
  const errno = error.errno && error.errno > 0 ? getSystemErrorName(-error.errno) : undefined
  const named = errno === undefined || error.code === 'world_not_open' ? '' : ` (${errno})`
  return new SandlotError('exec_failed', `the command did not start: ${why}${named}`, {
    details: { reason: error.code, ...(errno === undefined ? {} : { errno }) },
    cause: error,
  })
}

const WORLD_ENDED =
  'its world has ended, because its first process was killed from inside or because it is being graded; its files can still be read'

function endOf(
  exec: string,
  result: ExecResult,
  stdout: Uint8Array,
  stderr: Uint8Array,
): NodeExecEnd {
  return {
    exec,
    exitCode: result.exitCode ?? null,
    signal: result.signal ?? null,
    timedOut: result.timedOut,
    killed: result.killed,
    durationMs: result.durationUs / 1_000,
    stdout,
    stderr,
    stdoutTotalBytes: result.counts.stdout.totalBytes,
    stdoutDroppedBytes: result.counts.stdout.droppedBytes,
    stderrTotalBytes: result.counts.stderr.totalBytes,
    stderrDroppedBytes: result.counts.stderr.droppedBytes,
    left: result.left,
    limits: metLimits(result),
  }
}

/** What an attached command still has, head and tail of each channel. */
async function collect(handle: ExecHandle): Promise<{ stdout: HeadTail; stderr: HeadTail }> {
  const kept = { stdout: new HeadTail(), stderr: new HeadTail() }
  for await (const { channel, bytes } of handle.output) kept[channel].add(bytes)
  return kept
}
