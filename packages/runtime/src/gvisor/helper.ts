import { RUNTIME_LIMITS } from '../limits.ts'
import { type LineChild, startLineChild } from '../process/line-child.ts'

/** Why the host helper could not do what was asked. */
export class HelperError extends Error {
  override readonly name = 'HelperError'
  /** `create`, `control`, `fifos`, … ; `helper` when it died itself. */
  readonly stage: string
  /** Last words of the runtime's log. */
  readonly log: string

  constructor(stage: string, message: string, log = '') {
    super(`${stage}: ${message}`)
    this.stage = stage
    this.log = log
  }
}

export interface LaunchRequest {
  readonly in: string
  readonly out: string
  readonly pipeBytes: number
  readonly stderr: string
  readonly log: string
  readonly cgroupProcs: readonly string[]
  readonly argv: readonly string[]
  readonly pidFile: string
  readonly controlSocket: string
  readonly container: string
  /** False where `argv` brings it up by itself. */
  readonly start: boolean
  readonly deadlineMs: number
}

export interface Launched {
  readonly sentryPid: number
  readonly pipeBytes: number
  readonly createUs: number
  readonly startUs: number
}

export interface MountRequest {
  readonly controlSocket: string
  readonly container: string
  readonly source: string
  readonly destination: string
  readonly deadlineMs: number
}

export interface HoldRequest {
  readonly controlSocket: string
  readonly sentryPid: number
  readonly deadlineMs: number
}

interface Pending {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: HelperError) => void
  readonly timer: NodeJS.Timeout
}

/** The host helper's client. It starts the helper when first asked, and again should it have died. */
export class HostHelper {
  readonly #program: string
  readonly #pending = new Map<number, Pending>()
  #child: LineChild | undefined
  #lastId = 0
  #closed = false

  constructor(program: string) {
    this.#program = program
  }

  /** Undefined while none runs. */
  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** Makes both FIFOs. */
  async fifos(paths: { in: string; out: string }): Promise<void> {
    await this.#ask({ op: 'fifos', ...paths }, RUNTIME_LIMITS.helperGraceMs)
  }

  async launch(request: LaunchRequest): Promise<Launched> {
    const reply = await this.#ask({ op: 'launch', ...request }, request.deadlineMs)
    return reply as Launched
  }

  async mount(request: MountRequest): Promise<{ elapsedUs: number }> {
    const reply = await this.#ask({ op: 'mount', ...request }, request.deadlineMs)
    return reply as { elapsedUs: number }
  }

  /** Holds up all that runs in a sandbox, its agent too. Should this process and the helper end meanwhile, so does the sandbox. */
  async hold(request: HoldRequest): Promise<void> {
    await this.#ask({ op: 'hold', ...request }, request.deadlineMs)
  }

  /** What was held goes on. */
  async letGo(request: HoldRequest): Promise<void> {
    await this.#ask({ op: 'letGo', ...request }, request.deadlineMs)
  }

  /**
   * Takes a dead sandbox's first process out of the process table, where it is the helper's to do; 0: there was none. With it go all
   * that have died of this helper's launches.
   */
  async reap(pid: number): Promise<void> {
    // Without a helper there is nobody whose children they could be.
    if (!this.#child) return
    await this.#ask({ op: 'reap', pid }, RUNTIME_LIMITS.helperGraceMs)
  }

  /** Ends the helper; sandboxes live on. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#child?.close()
  }

  #ask(
    request: { readonly op: string; readonly [field: string]: unknown },
    deadlineMs: number,
  ): Promise<unknown> {
    if (this.#closed) return Promise.reject(new HelperError('helper', 'it was closed'))
    const child = this.#running()
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#pending.delete(id)
        reject(new HelperError('helper', `no answer to ${request.op} in time`))
      }, deadlineMs + RUNTIME_LIMITS.helperGraceMs)
      this.#pending.set(id, { resolve, reject, timer })
      child.send(JSON.stringify({ id, ...request }))
    })
  }

  #running(): LineChild {
    if (this.#child) return this.#child
    const child = startLineChild(this.#program, [], (line) => this.#answer(line))
    this.#child = child
    void child.ended.then((why) => {
      if (this.#child === child) this.#child = undefined
      this.#failAll(new HelperError('helper', `${this.#program} ${why}`))
    })
    return child
  }

  #answer(line: string): void {
    const reply = JSON.parse(line) as {
      id: number
      ok?: unknown
      error?: { stage: string; message: string; log?: string }
    }
    const pending = this.#pending.get(reply.id)
    if (!pending) return
    this.#pending.delete(reply.id)
    clearTimeout(pending.timer)
    if (reply.error === undefined) pending.resolve(reply.ok)
    else pending.reject(new HelperError(reply.error.stage, reply.error.message, reply.error.log))
  }

  #failAll(error: HelperError): void {
    for (const pending of this.#pending.values()) {
      clearTimeout(pending.timer)
      pending.reject(error)
    }
    this.#pending.clear()
  }
}
