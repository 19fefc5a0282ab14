import type { FateKind } from '../driver.ts'
import type {
  ExecChunk,
  ExecHandle,
  ExecListing,
  ExecOffsets,
  ExecOutcome,
  ExecRunSpec,
  ExecSpec,
  GuestBytes,
  GuestExecs,
  GuestWait,
  TerminalSize,
} from '../guest/guest.ts'
import { GuestError } from '../guest/guest-error.ts'
import { unlessAborted } from '../unless-aborted.ts'
import { FakeExec } from './exec.ts'
import { type FakeFiles, text } from './files.ts'
import type { FakePorts, FakeServer } from './ports.ts'
import type { FakeClock, FakeScript } from './script.ts'

const LISTED_MAX = 256
const FIRST_PID = 2

export interface FakeExecsOptions {
  readonly sandbox: string
  readonly script: FakeScript
  readonly clock: FakeClock
  /** Throws when the sandbox is gone. */
  readonly alive: () => void
  /** Files of an open world; throws `world_not_open`. */
  readonly filesOf: (world: string) => FakeFiles
  readonly ports: FakePorts
  readonly die: (kind: FateKind) => void
}

/** Commands of a fake sandbox: what they do is the script's to say. */
export class FakeExecs implements GuestExecs {
  readonly #options: FakeExecsOptions
  readonly #execs = new Map<string, FakeExec>()
  #lastPid = FIRST_PID

  constructor(options: FakeExecsOptions) {
    this.#options = options
  }

  start(spec: ExecSpec, wait?: Pick<GuestWait, 'signal'>): ExecHandle {
    const written: Uint8Array[] = []
    let ended = !spec.stdin
    try {
      const exec = this.#create(spec)
      const forget = () => void (spec.forget && this.#execs.delete(exec.exec))
      exec.result.then(forget, forget)
      // The script is asked once its stdin is complete.
      if (ended || spec.terminal) this.#perform(exec, spec, EMPTY)
      if (spec.terminal) {
        return handleOf(exec, wait?.signal, { stdoutFrom: 0, stderrFrom: 0 }, keyboardOf(exec))
      }
      return handleOf(
        exec,
        wait?.signal,
        { stdoutFrom: 0, stderrFrom: 0 },
        {
          write: async (bytes) => {
            if (ended || !exec.running) return false
            written.push(bytes)
            return true
          },
          end: () => {
            if (!ended && exec.running) this.#perform(exec, spec, Buffer.concat(written))
            ended = true
          },
        },
      )
    } catch (error) {
      return failedHandle(spec.exec, error)
    }
  }

  async run(spec: ExecRunSpec, wait: GuestWait = {}): Promise<ExecOutcome> {
    wait.signal?.throwIfAborted()
    const exec = this.#create({ ...spec, stdin: spec.stdin !== undefined, mode: 'buffered' })
    this.#perform(exec, spec, spec.stdin ? await collect(spec.stdin) : EMPTY)
    const kill = () => void exec.kill(9)
    wait.signal?.addEventListener('abort', kill, { once: true })
    try {
      const result = await exec.result
      wait.signal?.throwIfAborted()
      return { ...result, stdout: exec.stdout, stderr: exec.stderr }
    } finally {
      wait.signal?.removeEventListener('abort', kill)
      if (!spec.keep) this.#execs.delete(exec.exec)
    }
  }

  attach(exec: string, from: ExecOffsets, wait?: Pick<GuestWait, 'signal'>): ExecHandle {
    try {
      const found = this.#get(exec)
      return handleOf(found, wait?.signal, from, found.terminal ? keyboardOf(found) : CLOSED_STDIN)
    } catch (error) {
      return failedHandle(exec, error)
    }
  }

  async kill(exec: string, signal: number): Promise<{ processes: number }> {
    return { processes: this.#get(exec).kill(signal) ? 1 : 0 }
  }

  async resize(exec: string, size: TerminalSize): Promise<void> {
    this.#get(exec).resize(size)
  }

  async list(): Promise<readonly ExecListing[]> {
    this.#options.alive()
    return [...this.#execs.values()].slice(-LISTED_MAX).map((exec) => ({
      exec: exec.exec,
      world: exec.world,
      running: exec.running,
      pid: exec.pid,
      command: Buffer.from(exec.argv.join('\0')),
      cut: false,
      startedMs: this.#options.clock.now() - exec.startedAtMs,
      processes: exec.running ? 1 : 0,
      ...(exec.terminal ? { terminal: { printedBytes: exec.stdout.length } } : {}),
    }))
  }

  async forget(exec: string): Promise<void> {
    if (this.#get(exec).running) throw new GuestError('limit', `${exec} runs`)
    this.#execs.delete(exec)
  }

  /** For the guest: those that run in a world. */
  running(world: string): readonly FakeExec[] {
    return [...this.#execs.values()].filter((exec) => exec.running && exec.world === world)
  }

  /** For the guest: the sandbox is gone. */
  failAll(error: Error): void {
    for (const exec of this.#execs.values()) exec.fail(error)
  }

  #create(spec: ExecSpec): FakeExec {
    this.#options.alive()
    this.#options.filesOf(spec.world)
    if (this.#execs.has(spec.exec)) throw new GuestError('exec_exists', spec.exec)
    if (spec.argv.length === 0) throw new GuestError('invalid', 'argv is empty')
    const exec = new FakeExec({
      exec: spec.exec,
      world: spec.world,
      argv: spec.argv.map(text),
      pid: ++this.#lastPid,
      timeoutMs: spec.timeoutMs,
      terminal: spec.terminal,
      clock: this.#options.clock,
      onDeath: this.#options.die,
    })
    this.#execs.set(spec.exec, exec)
    return exec
  }

  #perform(exec: FakeExec, spec: Omit<ExecSpec, 'stdin' | 'mode'>, stdin: Uint8Array): void {
    const command = {
      sandbox: this.#options.sandbox,
      world: spec.world,
      exec: spec.exec,
      argv: exec.argv,
      env: Object.fromEntries(spec.env.map(([name, value]) => [text(name), text(value)])),
      cwd: text(spec.cwd),
      user: spec.user ?? '0:0',
      stdin,
      ...(exec.terminal ? { terminal: exec.terminal } : {}),
      files: this.#options.filesOf(spec.world),
      signal: exec.signal,
      listen: (port: number, server: FakeServer, address = '0.0.0.0') =>
        this.#options.ports.listen({ port, address, server }, exec.signal),
    }
    try {
      exec.perform(this.#options.script(command))
    } catch (error) {
      exec.fail(error instanceof Error ? error : new Error(String(error)))
    }
  }

  #get(exec: string): FakeExec {
    this.#options.alive()
    const found = this.#execs.get(exec)
    if (!found) throw new GuestError('exec_unknown', exec)
    return found
  }
}

const EMPTY = new Uint8Array()
const CLOSED_STDIN = { write: async () => false, end: () => {} }

function keyboardOf(exec: FakeExec): ExecHandle['stdin'] {
  return { write: async (bytes) => exec.type(bytes), end: () => {} }
}

function handleOf(
  exec: FakeExec,
  signal: AbortSignal | undefined,
  from: ExecOffsets,
  stdin: ExecHandle['stdin'],
): ExecHandle {
  const detached = new AbortController()
  exec.readBy(() => detached.abort(new GuestError('cancelled', 'another reader attached')))
  const signals = signal ? [signal, detached.signal] : [detached.signal]
  const left = AbortSignal.any(signals)
  const result = unlessAborted(left, exec.result)
  result.catch(() => {})
  return {
    exec: exec.exec,
    started: Promise.resolve({ pid: exec.pid }),
    stdin,
    output: outputOf(exec, from, left),
    result,
    detach: () => detached.abort(new GuestError('cancelled', `${exec.exec} was detached`)),
  }
}

async function* outputOf(
  exec: FakeExec,
  from: ExecOffsets,
  left: AbortSignal,
): AsyncGenerator<ExecChunk> {
  await unlessAborted(left, exec.replied).catch(() => {})
  if (left.aborted) return
  const { stdoutFrom, stderrFrom } = from
  for (let offset = stdoutFrom; ; ) {
    // Before what there is, so that nothing that comes meanwhile is missed.
    const { more, running } = exec
    const bytes = exec.stdout.subarray(offset)
    if (bytes.length > 0) yield { channel: 'stdout', bytes, offset }
    offset += bytes.length
    if (!exec.terminal || !running || left.aborted) break
    await unlessAborted(left, Promise.race([more.promise, exec.result])).catch(() => {})
  }
  if (stderrFrom < exec.stderr.length) {
    yield { channel: 'stderr', bytes: exec.stderr.subarray(stderrFrom), offset: stderrFrom }
  }
  await unlessAborted(left, exec.result).catch(() => {})
}

function failedHandle(exec: string, error: unknown): ExecHandle {
  const failed = <T>(): Promise<T> => {
    const promise = Promise.reject<T>(error)
    promise.catch(() => {})
    return promise
  }
  return {
    exec,
    started: failed(),
    stdin: CLOSED_STDIN,
    output: (async function* () {})(),
    result: failed(),
    detach: () => {},
  }
}

export async function collect(bytes: GuestBytes): Promise<Uint8Array> {
  if (bytes instanceof Uint8Array) return bytes
  const chunks: Uint8Array[] = []
  for await (const chunk of bytes) chunks.push(chunk)
  return Buffer.concat(chunks)
}
