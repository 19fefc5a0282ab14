import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import type { Allowance } from './allowance.ts'

/**
 * A connection whose bytes are counted, and wait, while they pass. It holds one chunk of each direction: whoever sends more is held up.
 * Destroyed with the `Refusal` of what is used up.
 */
export class Metered extends Duplex {
  readonly #outer: Socket
  readonly #allowance: Allowance
  readonly #over = new AbortController()
  /** A chunk is on its way in: the next one would overtake it. */
  #coming = false
  #wanted = false

  constructor(outer: Socket, allowance: Allowance) {
    super({ allowHalfOpen: true })
    this.#outer = outer
    this.#allowance = allowance
    outer.pause()
    outer.on('data', (chunk: Buffer) => void this.#came(chunk))
    outer.on('end', () => this.push(null))
    outer.on('error', (error) => this.destroy(error))
    outer.on('close', () => this.destroy())
  }

  override _read(): void {
    this.#wanted = true
    if (!this.#coming) this.#outer.resume()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error) => void): void {
    const write = (part: Buffer) =>
      new Promise<void>((resolve, reject) => {
        this.#outer.write(part, (error) => (error ? reject(error) : resolve()))
      })
    this.#passed(chunk, write).then(() => done(), done)
  }

  override _final(done: (error?: Error) => void): void {
    this.#outer.end(() => done())
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#over.abort()
    this.#outer.destroy()
    done(error)
  }

  async #came(chunk: Buffer): Promise<void> {
    this.#outer.pause()
    this.#coming = true
    try {
      await this.#passed(chunk, (part) => {
        this.#wanted = false
        // It may be asked for the next one meanwhile.
        if (this.push(part)) this.#wanted = true
      })
      this.#coming = false
      if (this.#wanted) this.#outer.resume()
    } catch (error) {
      this.destroy(error as Error)
    }
  }

  async #passed(chunk: Buffer, hand: (part: Buffer) => Promise<void> | void): Promise<void> {
    for (let at = 0; at < chunk.length; ) {
      const part = chunk.subarray(at, at + this.#allowance.portionBytes)
      await this.#allowance.pass(part.length, this.#over.signal)
      await hand(part)
      at += part.length
    }
  }
}
