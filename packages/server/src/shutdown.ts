import type { Server } from 'node:http'
import type { Server as TlsServer } from 'node:https'
import type { Logger } from 'pino'
import type { CoordinatorPort } from './coordinator/port.ts'
import type { Queues } from './functions/queues.ts'
import type { Node } from './node/node.ts'
import type { Serving } from './serving.ts'

export interface ShutdownParts {
  readonly serving: Serving
  readonly coordinator: CoordinatorPort
  readonly queues: Queues
  readonly node: Node
  readonly server: Server | TlsServer
  readonly log: Logger
  /** Ends the WebSockets. */
  readonly closeSockets: () => void
}

export interface ShutdownOptions {
  readonly drainMs: number
  readonly sandboxes: 'stop' | 'keep'
}

/** How often it is looked whether attempts still run. */
const LOOK_EVERY_MS = 100

/** The way down, once: no new work, a time for what runs, then the end of all in the order in which one leans on the other. */
export class Shutdown {
  readonly #parts: ShutdownParts
  readonly #hurried = new AbortController()
  #running: Promise<void> | undefined

  constructor(parts: ShutdownParts) {
    this.#parts = parts
  }

  run(options: ShutdownOptions): Promise<void> {
    this.#running ??= this.#run(options)
    return this.#running
  }

  /** Waits no more for what runs. */
  hurry(): void {
    this.#hurried.abort()
  }

  async #run({ drainMs, sandboxes }: ShutdownOptions): Promise<void> {
    const { serving, coordinator, queues, node, server, log, closeSockets } = this.#parts
    serving.drain()
    coordinator.drain()
    queues.drain()
    await node.pool.close()
    if (drainMs > 0 && this.#busy()) {
      log.info({ commands: serving.underWay, ...coordinator.numbers().episodes }, 'draining')
      await this.#idle(drainMs)
    }
    if (this.#busy()) log.warn({ commands: serving.underWay }, 'work is left unfinished')
    if (sandboxes === 'stop') await coordinator.giveUp()
    // It decides no more: what ends from here on is found and decided by the next start.
    await coordinator[Symbol.asyncDispose]()
    await queues[Symbol.asyncDispose]()
    closeSockets()
    const closed = new Promise((resolve) => server.close(resolve))
    await node.close(sandboxes)
    server.closeAllConnections()
    await closed
  }

  #busy(): boolean {
    const { serving, coordinator, queues } = this.#parts
    const { running, grading } = coordinator.numbers().episodes
    return serving.underWay > 0 || queues.running > 0 || running > 0 || grading > 0
  }

  async #idle(drainMs: number): Promise<void> {
    const until = performance.now() + drainMs
    while (this.#busy() && performance.now() < until && !this.#hurried.signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, LOOK_EVERY_MS)
      this.#hurried.signal.addEventListener('abort', () => resolve(), { once: true })
      await promise
      clearTimeout(timer)
    }
  }
}
