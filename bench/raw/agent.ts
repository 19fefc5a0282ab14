/** The shortest way to an agent: frames over its two FIFOs, no check, no deadline. */
import { randomBytes } from 'node:crypto'
import {
  encodeSync,
  FRAME,
  FRAME_LIMITS,
  FrameDecoder,
  Mux,
  type MuxStream,
  type PayloadMap,
} from '@sandlot/protocol/frames'
import { type SandboxSpec, sizesOf } from '@sandlot/runtime'
import type { RawPipes } from './pipes.ts'

const encoder = new TextEncoder()

export class RawAgent {
  readonly #mux: Mux
  #execs = 0

  private constructor(mux: Mux) {
    this.#mux = mux
  }

  /** Resolves at the agent's hello. */
  static attach({ input, output }: RawPipes): Promise<RawAgent> {
    return new Promise((resolve, reject) => {
      const nonce = new Uint8Array(randomBytes(FRAME_LIMITS.nonce))
      const mux: Mux = new Mux({
        side: 'dialler',
        transport: {
          write: (bytes, done) => input.write(bytes, done),
          onDrain: (resume) => input.on('drain', resume),
        },
        onHello: () => resolve(new RawAgent(mux)),
        onClose: reject,
      })
      let acknowledged = false
      const decoder = new FrameDecoder(
        (...frame) => {
          if (acknowledged) mux.deliver(...frame)
          else acknowledged = frame[0] === FRAME.syncAck
        },
        { hunt: { type: 'syncAck', nonce } },
      )
      output.on('data', (chunk) => decoder.push(chunk))
      output.on('end', () => mux.close())
      output.resume()
      input.write(encodeSync('sync', nonce))
    })
  }

  open(op: string, fields: PayloadMap): MuxStream {
    return this.#mux.open({ op, ...fields })
  }

  async openWorld({ layers, limits, hostname }: SandboxSpec): Promise<void> {
    const sizes = sizesOf(limits)
    await this.open('world.open', {
      world: 'main',
      layers: layers.map((_, index) => encoder.encode(`/img/${index}`)).reverse(),
      upperBytes: sizes.upperBytes,
      upperInodes: sizes.upperInodes,
      shmBytes: sizes.shmBytes,
      pidsMax: limits.pidsMax,
      nofileMax: limits.nofileMax,
      hostname,
      memoryTotalBytes: limits.memoryBytes,
      cpus: Math.max(1, Math.ceil(limits.cpus)),
    }).done
  }

  exec(argv: readonly string[], mode: 'stream' | 'buffered'): MuxStream {
    return this.open('exec.start', {
      world: 'main',
      exec: `raw${++this.#execs}`,
      argv: argv.map((argument) => encoder.encode(argument)),
      env: [[encoder.encode('PATH'), encoder.encode('/usr/bin:/bin')]],
      cwd: encoder.encode('/'),
      stdin: false,
      mode,
    })
  }
}
