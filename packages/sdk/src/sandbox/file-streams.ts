import type { ConnectRequestInput } from '@sandlot/protocol'
import { FRAME_LIMITS, type PayloadMap } from '@sandlot/protocol/frames'
import type { ClientContext } from '../connection/context.ts'
import { asSandlotError, isOutage } from '../connection/failure.ts'
import { joinSignals } from '../connection/signals.ts'
import type { World } from './exec.ts'
import type { ReadOptions, SandboxPath } from './files.ts'

export interface FilesTarget extends ClientContext {
  readonly sandbox: string
  readonly world: World
  /** Ends everything that waits. */
  readonly signal: AbortSignal | undefined
}

type FileRequest = Extract<ConnectRequestInput, { op: `file.${string}` | `tar.${string}` }>
/** A request without the sandbox that it is for. */
type Asked<R> = R extends FileRequest ? Omit<R, 'sandbox' | 'world'> : never

export interface UploadOptions {
  readonly signal: AbortSignal | undefined
  /** Whether it may be sent again from the beginning. */
  readonly again: boolean
}

const INPUT = 0
const OUTPUT = 1

/** Contents of files and trees, both ways. */
export class FileStreams {
  readonly #target: FilesTarget

  constructor(target: FilesTarget) {
    this.#target = target
  }

  /** A file's bytes; over a lost connection it is read on from where it was. */
  async *readFile(path: SandboxPath, options: ReadOptions): AsyncGenerator<Uint8Array> {
    const { signal, offset = 0, length } = options
    using joined = joinSignals(signal, this.#target.signal)
    const outage = this.#target.connection.outage()
    for (let readBytes = 0; ; ) {
      const left = length === undefined ? {} : { length: length - readBytes }
      const request = { op: 'file.read', path, offset: offset + readBytes, ...left } as const
      try {
        for await (const part of this.download(request, joined.signal)) {
          outage.over()
          readBytes += part.length
          yield part
        }
        return
      } catch (error) {
        if (!isOutage(error)) throw error
        await outage.wait(error, joined.signal)
      }
    }
  }

  /** Does it again over a lost connection. */
  async again<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    using joined = joinSignals(signal, this.#target.signal)
    const outage = this.#target.connection.outage()
    for (;;) {
      try {
        return await work()
      } catch (error) {
        if (!isOutage(error)) throw error
        await outage.wait(error, joined.signal)
      }
    }
  }

  async *download(
    asked: Asked<FileRequest>,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<Uint8Array> {
    using joined = joinSignals(signal, this.#target.signal)
    try {
      const stream = await this.#target.connection.open(this.#request(asked), joined.signal)
      let complete = false
      try {
        yield* stream.read(OUTPUT, { window: FRAME_LIMITS.fileWindow })
        await stream.done
        complete = true
      } finally {
        if (!complete) stream.cancel()
      }
    } catch (error) {
      throw asSandlotError(error)
    }
  }

  /** `open` gives the content from its beginning. */
  async upload(
    asked: Asked<FileRequest>,
    open: () => AsyncIterable<Uint8Array>,
    { signal, again }: UploadOptions,
  ): Promise<PayloadMap> {
    const send = async () => await this.#uploadOnce(asked, open(), signal)
    return again ? await this.again(signal, send) : await send()
  }

  async #uploadOnce(
    asked: Asked<FileRequest>,
    content: AsyncIterable<Uint8Array>,
    signal: AbortSignal | undefined,
  ): Promise<PayloadMap> {
    using joined = joinSignals(signal, this.#target.signal)
    const source = content[Symbol.asyncIterator]()
    try {
      const stream = await this.#target.connection.open(this.#request(asked), joined.signal)
      for (;;) {
        const next = await source.next().catch((error) => {
          stream.abort(error)
          throw error
        })
        if (next.done) break
        // A refusal says more than the broken pipe that it causes.
        const refused = await stream.send(INPUT, next.value).catch(() => stream.done)
        if (refused) return refused
      }
      stream.end(INPUT)
      return await stream.done
    } catch (error) {
      throw asSandlotError(error)
    } finally {
      await source.return?.()
    }
  }

  #request(asked: Asked<FileRequest>): ConnectRequestInput {
    const { sandbox, world } = this.#target
    return { ...asked, sandbox, world } as ConnectRequestInput
  }
}
