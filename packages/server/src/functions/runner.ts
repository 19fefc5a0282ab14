/** The host's end of one runner. */
import { type Digest, type Engine, isEngineError } from '@sandlot/engine'
import { SandlotError, type TaskError } from '@sandlot/protocol'
import { type ExecHandle, type Guest, GuestError, GuestLost } from '@sandlot/runtime'
import { toSandlotError } from '../failure.ts'
import type { ContainerEnd, ContainerInput } from './container.ts'
import { FUNCTION_LIMITS } from './limits.ts'
import { FUNCTION_DIRECTORY } from './runner-files.ts'
import { type RunnerFrame, type RunnerRequest, readLines } from './runner-wire.ts'
import { lostError, type TryEnd, taskErrorOf } from './tries.ts'

export interface RunnerOptions {
  readonly handle: ExecHandle
  readonly secret: string
  /** What a person calls the function. */
  readonly label: string
  readonly files: {
    readonly guest: Guest
    readonly blobs: Engine['blobs']
    /** Told of each content before it is named. */
    readonly stored?: (blob: string) => Promise<void>
  }
  /** Why the process is no more, given the last that it printed. */
  readonly ended: (said: string) => Promise<ContainerEnd>
}

type End = Exclude<TryEnd, { kind: 'idle' }>

interface Running {
  readonly input: ContainerInput
  readonly settle: (end: End) => void
}

export class Runner {
  /** Resolves when it takes nothing more. */
  readonly gone: Promise<void>
  readonly #gone = Promise.withResolvers<void>()
  readonly #options: RunnerOptions
  readonly #running = new Map<string, Running>()
  readonly #loaded = Promise.withResolvers<void>()
  #said = ''
  #end: ContainerEnd | undefined

  constructor(options: RunnerOptions) {
    this.#options = options
    this.#loaded.promise.catch(() => {})
    options.handle.started.catch(() => {})
    options.handle.result.catch(() => {})
    this.gone = this.#gone.promise
    this.#send({ k: 'begin', secret: options.secret }).catch(() => {})
    void this.#read()
  }

  /** Rejects with `function_invalid` where the module can't be loaded, and with what else kept it from being. */
  async ready(signal: AbortSignal): Promise<void> {
    const late = Promise.withResolvers<never>()
    const abort = () => late.reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    if (signal.aborted) abort()
    try {
      await Promise.race([this.#loaded.promise, late.promise])
    } catch (error) {
      this.close()
      throw error
    } finally {
      signal.removeEventListener('abort', abort)
    }
  }

  async run(input: ContainerInput): Promise<End> {
    if (this.#end) return this.#end
    const { promise, resolve } = Promise.withResolvers<End>()
    this.#running.set(input.id, { input, settle: resolve })
    await this.#hand(input).catch((error) => this.#settle(input.id, this.#notHanded(error)))
    return await promise
  }

  cancel(id: string): void {
    this.#running.delete(id)
    this.#send({ k: 'cancel', id }).catch(() => {})
  }

  abort(id: string): void {
    this.#send({ k: 'cancel', id }).catch(() => {})
  }

  async bring(name: string, blob: string): Promise<void> {
    const { guest, blobs } = this.#options.files
    const { body } = await blobs.open(blob as Digest)
    await guest.files.write('main', `${FUNCTION_DIRECTORY}/${name}`, body)
  }

  async collect(name: string, expected: string): Promise<void> {
    const { guest, blobs, stored } = this.#options.files
    const file = `${FUNCTION_DIRECTORY}/${name}`
    const { content } = await guest.files.read('main', file)
    const sizeBytesMax = FUNCTION_LIMITS.payloadBytes
    await blobs.put(content, { sizeBytesMax, expectDigest: expected as Digest })
    await stored?.(expected)
    guest.files.remove('main', file).catch(() => {})
  }

  close(): void {
    this.#over({ kind: 'infra', error: lostError('the container was ended') })
    this.#options.handle.stdin.end()
    this.#options.handle.detach()
  }

  async #hand({ id, json, blob, attempt }: ContainerInput): Promise<void> {
    if (blob === null) return await this.#send({ k: 'run', id, json, attempt })
    const { guest, blobs } = this.#options.files
    const file = `${FUNCTION_DIRECTORY}/in-${id}`
    const { body } = await blobs.open(blob as Digest)
    // The runner removes it, and may be another user than root: the directory is everybody's.
    await guest.files.write('main', file, body)
    await this.#send({ k: 'run', id, json: null, file, attempt })
  }

  async #send(request: RunnerRequest): Promise<void> {
    await this.#options.handle.stdin.write(Buffer.from(`${JSON.stringify(request)}\n`))
  }

  async #read(): Promise<void> {
    const { handle, secret, ended } = this.#options
    const lines = readLines(secret, {
      frame: (frame) => this.#take(frame),
      text: (text) => this.#say(`${text}\n`),
    })
    const errors = new TextDecoder()
    try {
      for await (const { channel, bytes } of handle.output) {
        if (channel === 'stdout') lines.push(bytes)
        else this.#say(errors.decode(bytes, { stream: true }))
      }
    } catch {
      // How it ended says why.
    }
    if (!this.#end) this.#over(await ended(this.#said.trim()))
  }

  /** The first cause counts. */
  #over(end: ContainerEnd): void {
    this.#end ??= end
    const { code, message } = this.#end.error
    this.#loaded.reject(new SandlotError(code ?? 'function_exited', message))
    for (const { settle } of this.#running.values()) settle(this.#end)
    this.#running.clear()
    this.#gone.resolve()
  }

  #take(frame: RunnerFrame | undefined): void {
    if (frame === undefined) this.#over(this.#garbled())
    else if (frame.k === 'ready') this.#loaded.resolve()
    else if (frame.k === 'broken') {
      this.#loaded.reject(brokenError(this.#options.label, frame.error))
    } else if (frame.k === 'log') {
      const { id, channel, text } = frame
      if (id === null) this.#say(`${text}\n`)
      else this.#running.get(id)?.input.onLog({ channel, text })
    } else if (frame.k === 'told') {
      this.#running.get(frame.id)?.input.onNews?.(frame.news)
    } else void this.#finish(frame)
  }

  async #finish(frame: Extract<RunnerFrame, { k: 'value' | 'threw' }>): Promise<void> {
    const running = this.#running.get(frame.id)
    if (!running) return
    const end =
      frame.k === 'threw'
        ? ({ kind: 'error', error: { code: null, ...bounded(frame.error) } } as const)
        : await this.#value(running.input, frame).catch((error) => this.#unread(error))
    this.#settle(frame.id, end)
  }

  /** Without an end, how the container ended says why. */
  #settle(id: string, end: End | undefined): void {
    const running = this.#running.get(id)
    if (!running || !end) return
    this.#running.delete(id)
    running.settle(end)
  }

  async #value(
    { id, outputPin }: ContainerInput,
    { json, file }: { readonly json: string | null; readonly file?: string | undefined },
  ): Promise<End> {
    if (file === undefined) return { kind: 'value', json, blob: null }
    const { guest, blobs, stored } = this.#options.files
    if (!file.startsWith(`${FUNCTION_DIRECTORY}/out-`)) {
      throw new GuestError('invalid', `it is no file of its own: ${file.slice(0, 100)}`)
    }
    try {
      const { content } = await guest.files.read('main', file)
      const sizeBytesMax = FUNCTION_LIMITS.payloadBytes
      const { digest } = await blobs.put(content, { sizeBytesMax })
      // Of one that nobody waits for any more the name is the next try's.
      if (outputPin !== null && this.#running.has(id)) await blobs.pin(outputPin, digest)
      await stored?.(digest)
      return { kind: 'value', json: null, blob: digest }
    } finally {
      guest.files.remove('main', file).catch(() => {})
    }
  }

  /** The handler did its work, but what it returned can't be kept. */
  #unread(error: unknown): End | undefined {
    return endOf(error, `what ${this.#options.label} returned could not be kept`)
  }

  /** It never had the input. */
  #notHanded(error: unknown): End | undefined {
    return endOf(error, `the input could not be brought to ${this.#options.label}`)
  }

  #garbled(): ContainerEnd {
    const message = `the answers of ${this.#options.label} are mixed with what a program that it started prints to the same stdout: give that program a stdout of its own`
    return { kind: 'error', error: taskErrorOf(new SandlotError('function_exited', message)) }
  }

  #say(text: string): void {
    this.#said = (this.#said + text).slice(-FUNCTION_LIMITS.tailChars)
  }
}

/** Whose failure it was; undefined where the container is lost, which is told by its end. */
function endOf(error: unknown, what: string): End | undefined {
  if (error instanceof GuestLost) return undefined
  const { code, message: why } = toSandlotError(error)
  const message = `${what}: ${why}`
  const isOwn = error instanceof GuestError || isEngineError(error, 'too_large')
  if (isOwn) return { kind: 'error', error: taskErrorOf(new SandlotError(code, message)) }
  return { kind: 'infra', error: lostError(message) }
}

/** Of what a function throws so much is kept. */
function bounded({ name, message, stack }: Omit<TaskError, 'code'>): Omit<TaskError, 'code'> {
  return {
    name: name.slice(0, FUNCTION_LIMITS.nameChars),
    message: message.slice(0, FUNCTION_LIMITS.messageChars),
    ...(stack === undefined ? {} : { stack: stack.slice(0, FUNCTION_LIMITS.stackChars) }),
  }
}

function brokenError(label: string, thrown: Omit<TaskError, 'code'>): SandlotError {
  const { name, message, stack } = bounded(thrown)
  const where = stack?.split('\n').slice(1, 4).join('\n')
  const text = `${label} can't be loaded: ${name}: ${message}${where ? `\n${where}` : ''}`
  return new SandlotError('function_invalid', text)
}
