import { FrameDecoder } from '../decoder.ts'
import { FRAME, FRAME_LIMITS } from '../frame.ts'
import { Mux, type MuxOptions } from '../mux.ts'

/** Numbers in [0, 1) that follow from a seed (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

export interface Joined {
  readonly dialler: Mux
  readonly dialled: Mux
  /** What a watcher of both directions saw go beyond its credit: always empty. */
  readonly overruns: readonly string[]
}

/**
 * Two muxes over a pair of pipes that hold few bytes, deliver in pieces of any size, and let random numbers of turns of the
 * event loop pass between them.
 */
export function joinMuxes(options: {
  seed: number
  dialled: Omit<MuxOptions, 'transport' | 'side'>
  dialler?: Omit<MuxOptions, 'transport' | 'side'>
  pipeBytes?: number
}): Joined {
  const random = seeded(options.seed)
  const pipeBytes = options.pipeBytes ?? 100_000
  const overruns: string[] = []
  const watch = creditWatch(overruns)
  const there = new Pipe(random, pipeBytes, (bytes) => {
    watch.towardsDialled(bytes)
    dialled.receive(bytes)
  })
  const back = new Pipe(random, pipeBytes, (bytes) => {
    watch.towardsDialler(bytes)
    dialler.receive(bytes)
  })
  const dialler = new Mux({ ...options.dialler, side: 'dialler', transport: there })
  const dialled = new Mux({ ...options.dialled, side: 'dialled', transport: back })
  return { dialler, dialled, overruns }
}

class Pipe {
  #held: Uint8Array[] = []
  #bytes = 0
  #resume = () => {}
  #moving = false
  readonly #random: () => number
  readonly #room: number
  readonly #deliver: (bytes: Uint8Array) => void

  constructor(random: () => number, room: number, deliver: (bytes: Uint8Array) => void) {
    this.#random = random
    this.#room = room
    this.#deliver = deliver
  }

  onDrain(resume: () => void): void {
    this.#resume = resume
  }

  write(bytes: Uint8Array): boolean {
    this.#held.push(bytes)
    this.#bytes += bytes.length
    if (!this.#moving) {
      this.#moving = true
      setImmediate(() => this.#move())
    }
    return this.#bytes < this.#room
  }

  #move(): void {
    const first = this.#held.shift()
    if (!first) {
      this.#moving = false
      this.#resume()
      return
    }
    if (this.#random() < 0.3) this.#held.unshift(first)
    else {
      const cut = Math.ceil(this.#random() ** 3 * first.length)
      if (cut < first.length) this.#held.unshift(first.slice(cut))
      this.#bytes -= cut
      this.#deliver(first.slice(0, cut))
      if (this.#bytes < this.#room / 2) this.#resume()
    }
    setImmediate(() => this.#move())
  }
}

/** Reads both directions and checks that nobody sends data without credit for it. */
function creditWatch(overruns: string[]) {
  const left = new Map<string, number>()
  const add = (key: string, bytes: number) => {
    const now = (left.get(key) ?? FRAME_LIMITS.window) + bytes
    left.set(key, now)
    if (now < 0) overruns.push(`${key}: ${now}`)
  }
  const decoder = (own: string, other: string) =>
    new FrameDecoder((type, channel, stream, payload) => {
      if (type === FRAME.data) add(`${own} ${stream} ${channel}`, -payload.length)
      if (type === FRAME.credit) {
        const grant = new DataView(payload.buffer, payload.byteOffset, 4).getUint32(0, true)
        add(`${other} ${stream} ${channel}`, grant)
      }
    })
  const towardsDialled = decoder('dialler', 'dialled')
  const towardsDialler = decoder('dialled', 'dialler')
  return {
    towardsDialled: (bytes: Uint8Array) => towardsDialled.push(bytes),
    towardsDialler: (bytes: Uint8Array) => towardsDialler.push(bytes),
  }
}
