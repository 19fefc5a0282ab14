import type { PayloadMap } from '@sandlot/protocol/frames'
import { AgentExec, failedExec, type VetEnd } from './agent-exec.ts'
import { runBuffered } from './exec-run.ts'
import type {
  ExecHandle,
  ExecListing,
  ExecOffsets,
  ExecOutcome,
  ExecRunSpec,
  ExecSpec,
  GuestExecs,
  GuestWait,
  TerminalSize,
} from './guest.ts'
import { GuestError } from './guest-error.ts'
import { toBytes, toPath } from './guest-text.ts'
import { GUEST_LIMITS } from './limits.ts'
import type { GuestLink } from './link.ts'
import * as messages from './messages.ts'
import { TERMINAL_REVISION } from './revision.ts'

const START: ExecOffsets = { stdoutFrom: 0, stderrFrom: 0 }
const EXEC_ID = /^[A-Za-z0-9_-]{1,64}$/

/** Commands of a sandbox, by requests to its agent. */
export class AgentExecs implements GuestExecs {
  readonly #link: GuestLink
  readonly #vetEnd: VetEnd | undefined

  constructor(link: GuestLink, vetEnd?: VetEnd) {
    this.#link = link
    this.#vetEnd = vetEnd
  }

  start(spec: ExecSpec, wait: Pick<GuestWait, 'signal'> = {}): ExecHandle {
    try {
      return this.startReading(spec, wait)
    } catch (error) {
      return failedExec(spec.exec, error)
    }
  }

  run(spec: ExecRunSpec, wait: GuestWait = {}): Promise<ExecOutcome> {
    return runBuffered(this.#link, this, spec, wait)
  }

  attach(exec: string, from: ExecOffsets, wait: Pick<GuestWait, 'signal'> = {}): ExecHandle {
    try {
      const { stdoutFrom, stderrFrom } = from
      const stream = this.#link.open('exec.attach', { exec, stdoutFrom, stderrFrom }, wait)
      return new AgentExec(this.#link, { op: 'exec.attach', stream, exec, from, vet: this.#vetEnd })
    } catch (error) {
      return failedExec(exec, error)
    }
  }

  async kill(exec: string, signal: number, wait: GuestWait = {}): Promise<{ processes: number }> {
    return await this.#link.request('exec.kill', { exec, signal }, messages.execKill, wait)
  }

  async list(wait: GuestWait = {}): Promise<readonly ExecListing[]> {
    const { execs } = await this.#link.request('exec.list', {}, messages.execList, wait)
    const nowMs = Date.now()
    return execs.map(({ argv0, command, cut, screenBytes, ...listing }) => ({
      ...listing,
      ...(screenBytes === undefined ? {} : { terminal: { printedBytes: screenBytes } }),
      command: command ?? argv0 ?? new Uint8Array(0),
      cut: cut ?? command === undefined,
      startedMs: Math.max(0, nowMs - listing.startedMs),
    }))
  }

  async resize(exec: string, { columns, rows }: TerminalSize, wait: GuestWait = {}): Promise<void> {
    const size = { exec, columns, rows }
    await this.#link.request('exec.resize', size, messages.nothing, wait)
  }

  async forget(exec: string, wait: GuestWait = {}): Promise<void> {
    await this.#link.request('exec.forget', { exec }, messages.nothing, wait)
  }

  /** As `start`, but throws what makes it impossible to ask. */
  startReading(spec: ExecSpec, wait: Pick<GuestWait, 'signal'>): AgentExec {
    // An older agent would run it without one.
    if (spec.terminal) this.#link.requireRevision(TERMINAL_REVISION, 'a terminal')
    const stream = this.#link.open('exec.start', startArguments(spec), wait)
    const { exec } = spec
    return new AgentExec(this.#link, {
      op: 'exec.start',
      stream,
      exec,
      from: START,
      vet: this.#vetEnd,
    })
  }
}

function startArguments(spec: ExecSpec): PayloadMap {
  const { world, exec, stdin, mode, user, timeoutMs, headBytes, tailBytes, ringBytes } = spec
  const { forget, terminal } = spec
  if (terminal && !(stdin && mode === 'stream')) {
    throw new GuestError('invalid', 'a terminal is read while it runs, and typed at')
  }
  if (!EXEC_ID.test(exec)) throw new GuestError('invalid', `${JSON.stringify(exec)} is no exec id`)
  for (const kept of [headBytes, tailBytes, ringBytes]) {
    if (kept !== undefined && kept > GUEST_LIMITS.keptBytes) {
      throw new GuestError('invalid', `${kept} bytes of output are more than an agent keeps`)
    }
  }
  const argv = spec.argv.map(toBytes)
  const env = spec.env.map(([name, value]) => [toBytes(name), toBytes(value)])
  const cwd = toPath(spec.cwd)
  const kept = { headBytes, tailBytes, ringBytes }
  return { world, exec, argv, env, cwd, user, stdin, mode, timeoutMs, forget, ...terminal, ...kept }
}
