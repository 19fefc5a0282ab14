import { constants, openSync } from 'node:fs'
import { Socket } from 'node:net'
import {
  encodeSync,
  FRAME,
  FrameDecoder,
  Mux,
  type MuxStream,
  type PayloadMap,
} from '@sandlot/protocol/frames'

export type AgentScript = Record<string, (stream: MuxStream, request: PayloadMap) => void>

export const HELLO = {
  protocol: 1,
  agent: 'scripted',
  boot: new Uint8Array(16).fill(7),
  sandbox: '',
  uptimeMs: 5,
  worlds: [{ world: 'main', state: 'prepared' }],
  execs: [],
}

/** The guest's side of a pair of named pipes, in this process: it answers by a script what the real agent would do. */
export class ScriptedAgent {
  /** What it says of itself from the next sync on. */
  hello: PayloadMap = HELLO
  /** Set to false: a sync is read and not answered. */
  answersSync = true
  syncs = 0
  /** Requests in the order they came. */
  readonly requests: PayloadMap[] = []
  readonly #input: Socket
  readonly #output: Socket
  readonly #decoder: FrameDecoder
  readonly #script: AgentScript
  #mux: Mux | undefined

  constructor(paths: { inPath: string; outPath: string }, script: AgentScript) {
    this.#script = script
    const { O_RDWR, O_NONBLOCK } = constants
    const fd = (path: string) => openSync(path, O_RDWR | O_NONBLOCK)
    this.#input = new Socket({ fd: fd(paths.inPath), readable: true, writable: false })
    this.#output = new Socket({ fd: fd(paths.outPath), readable: false, writable: true })
    this.#decoder = new FrameDecoder((type, channel, stream, payload) => {
      if (type === FRAME.sync) this.#synced(payload.slice(16))
      else this.#mux?.deliver(type, channel, stream, payload)
    })
    this.#input.on('data', (chunk) => this.#receive(chunk))
  }

  /** Bytes that no agent would write. */
  writeRaw(bytes: Uint8Array): void {
    this.#output.write(bytes)
  }

  /** Asks something of the daemon that is attached. */
  open(request: PayloadMap): MuxStream {
    if (!this.#mux) throw new Error('no daemon is attached')
    return this.#mux.open(request)
  }

  /** Its sandbox dies. Idempotent. */
  async kill(): Promise<void> {
    const closed = [this.#input, this.#output].map((socket) =>
      socket.closed ? undefined : new Promise((resolve) => socket.once('close', resolve).destroy()),
    )
    await Promise.all(closed)
  }

  /** Reads nothing more, as a guest that is stopped. */
  freeze(): void {
    this.#input.pause()
  }

  #receive(chunk: Uint8Array): void {
    for (let bytes = chunk; ; bytes = new Uint8Array(0)) {
      try {
        this.#decoder.push(bytes)
        return
      } catch {
        this.#decoder.hunt({ type: 'sync' })
      }
    }
  }

  #synced(nonce: Uint8Array): void {
    this.syncs++
    this.#mux?.close()
    if (!this.answersSync) return
    const output = this.#output
    output.write(encodeSync('syncAck', nonce))
    this.#mux = new Mux({
      side: 'dialled',
      transport: {
        write: (bytes) => output.write(bytes),
        onDrain: (resume) => output.on('drain', resume),
      },
      onOpen: (stream, request) => {
        this.requests.push(request)
        const answer = this.#script[String(request.op)]
        if (answer) answer(stream, request)
        else stream.fail({ code: 'unsupported', message: 'no such request' })
      },
    })
    this.#mux.hello(this.hello)
  }
}
