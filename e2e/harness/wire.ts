/** A line between a client and a daemon that can be cut, or on which answers stay away. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export class Wire implements AsyncDisposable {
  /** Where a client finds the daemon by it. */
  url = ''
  /** Connections that were made, and those that were cut. */
  made = 0
  readonly #sockets = new Set<Socket>()
  readonly #server = createServer({ allowHalfOpen: true }, (near) => this.#join(near))
  readonly #to: URL
  #silent = false

  private constructor(to: string) {
    this.#to = new URL(to)
  }

  static async to(daemon: string): Promise<Wire> {
    const wire = new Wire(daemon)
    wire.#server.listen(0, '127.0.0.1')
    await once(wire.#server, 'listening')
    wire.url = `http://127.0.0.1:${(wire.#server.address() as AddressInfo).port}`
    return wire
  }

  /** All connections break, in the middle of whatever they carry. New ones may be made. */
  cut(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy()
    this.#sockets.clear()
    this.#silent = false
  }

  /** From now on, until it is cut, no answer arrives, though all that is asked does. */
  silence(): void {
    this.#silent = true
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close()
    this.cut()
    await once(this.#server, 'close')
  }

  #join(near: Socket): void {
    this.made += 1
    const far = connect(Number(this.#to.port), this.#to.hostname)
    for (const socket of [near, far]) {
      this.#sockets.add(socket)
      socket.on('error', () => {})
      socket.once('close', () => {
        this.#sockets.delete(socket)
        near.destroy()
        far.destroy()
      })
    }
    near.pipe(far)
    far.on('data', (bytes) => {
      if (!this.#silent && !near.write(bytes)) {
        far.pause()
        near.once('drain', () => far.resume())
      }
    })
    far.once('end', () => near.end())
  }
}
