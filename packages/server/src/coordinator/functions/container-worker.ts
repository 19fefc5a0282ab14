import { attemptNews, type Lease, newId, type WorkerEventFromServer } from '@sandlot/protocol'
import type { Container } from '../../functions/container.ts'
import type { Fleet, Slot } from '../../functions/fleet.ts'
import { COORDINATOR_LIMITS } from '../limits.ts'
import type { WorkerStream } from '../port.ts'
import type { SandboxWork } from '../sandboxes.ts'
import { OVER, type WorkerStreams } from '../worker-streams.ts'
import { runInContainer } from './attempt-in-container.ts'
import type { FunctionHost } from './function-host.ts'

export interface ContainerWorkerOptions {
  readonly work: SandboxWork
  readonly workers: WorkerStreams
  readonly host: FunctionHost
  readonly fleet: Fleet<ContainerWorker>
  readonly container: Container
  /** Attempts at once. */
  readonly each: number
}

/**
 * held: its handler runs ─▶ told: its report is being made durable ─▶ gone, when it is settled.
 * A revoked one is gone at once; its handler has a while to return, or the container takes no more and ends with the others that it has.
 */
interface Held {
  readonly lease: string
  readonly token: number
  readonly slot: Slot<ContainerWorker> | undefined
}

/**
 * A container as one worker of a run, from the moment in which its function is loaded. It goes by `close` (its leases go to others, at
 * nobody's cost), or with its container, which is the death of a worker.
 */
export class ContainerWorker {
  /** Resolves when its container is gone, and that is told. */
  readonly gone: Promise<void>
  readonly #options: ContainerWorkerOptions
  readonly #id = newId('worker')
  readonly #held = new Map<string, Held>()
  /** Handlers that have not returned, those of leases that were revoked among them. */
  readonly #running = new Set<Promise<void>>()
  #stream: WorkerStream = OVER
  #leaving = false
  #isOver = false
  #diedOf: string | undefined
  #cancelRenewal = () => {}

  constructor(options: ContainerWorkerOptions) {
    this.#options = options
    this.gone = options.container.gone.then(() => this.#die())
  }

  /** Once its fleet has it. */
  start(): void {
    if (this.#isOver) return
    this.#attach(this.#options.each)
    this.#renewIdle()
  }

  async close(): Promise<void> {
    this.#leave()
    await this.#options.container.close()
  }

  #attach(slots: number): void {
    const { work, workers, container } = this.#options
    const request = { run: work.record.name, worker: this.#id, slots, held: this.#which() }
    this.#stream = workers.attach(request, { send: (event) => this.#hear(event) })
    // It was silent for too long, or its run is read back from the log.
    this.#stream.done.catch(() => {
      if (!this.#isOver) void container.close()
    })
  }

  #hear(event: WorkerEventFromServer): void {
    switch (event.kind) {
      case 'lease':
        if (!this.#leaving && !this.#held.has(event.lease.lease)) this.#begin(event.lease)
        return
      case 'revoked':
        if (this.#held.delete(event.lease)) this.#options.container.abort(event.lease)
        return
      case 'settled':
        this.#held.delete(event.lease)
        if (this.#leaving && this.#held.size === 0) this.#leave()
        return
      case 'draining':
        return
    }
  }

  #begin(lease: Lease): void {
    const { fleet } = this.#options
    const mine = { lease: lease.lease, token: lease.token, slot: fleet.take(this) }
    this.#held.set(mine.lease, mine)
    this.#stream.receive({ kind: 'taken', lease: mine.lease, token: mine.token })
    const handled = this.#run(lease, mine).finally(() => {
      this.#running.delete(handled)
      mine.slot?.[Symbol.dispose]()
    })
    this.#running.add(handled)
  }

  async #run(lease: Lease, mine: Held): Promise<void> {
    const { work, container, host } = this.#options
    const onNews = (news: unknown) => this.#told(mine, news)
    const cancelWatch = this.#watchStop(mine)
    const end = await runInContainer(work, { container, host, lease, onNews }).finally(cancelWatch)
    if (end.kind === 'lost') this.#diedOf ??= end.cause
    if (end.kind === 'lost' || this.#held.get(mine.lease) !== mine) return
    // With one slot less: what this frees is not for a container that takes no more.
    if (this.#leaving && this.#held.size > 1) this.#attach(this.#held.size - 1)
    const { kind: _, artifacts, ...told } = end
    const which = { lease: mine.lease, token: mine.token }
    this.#stream.receive({
      kind: 'report',
      ...which,
      ...told,
      artifacts: [...artifacts],
      flags: [],
    })
  }

  /** Looks, while its handler runs, whether it goes on though nobody wants it any more. */
  #watchStop(mine: Held): () => void {
    const { clock } = this.#options.work
    const { handlerLookMs, handlerStopMs } = COORDINATOR_LIMITS
    let revokedForMs = 0
    const look = () => {
      if (this.#held.get(mine.lease) !== mine) revokedForMs += handlerLookMs
      if (revokedForMs >= handlerStopMs) this.#retire(mine)
      else cancel = clock.after(handlerLookMs, look)
    }
    let cancel = clock.after(handlerLookMs, look)
    return () => cancel()
  }

  #retire({ slot }: Held): void {
    slot?.retire()
    if (!this.#leaving) {
      this.#leaving = true
      if (this.#held.size === 0) this.#leave()
      else this.#attach(this.#held.size)
    }
    // That one is waited for no more.
    slot?.[Symbol.dispose]()
  }

  /** Idempotent. */
  #leave(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#cancelRenewal()
    this.#stream.left()
  }

  /** What its handlers came to is told first: why it died. */
  async #die(): Promise<void> {
    await Promise.allSettled(this.#running)
    if (this.#isOver) return
    this.#isOver = true
    this.#cancelRenewal()
    this.#stream.died(this.#diedOf ?? 'its container ended')
  }

  #told({ lease, token }: Held, news: unknown): void {
    const parsed = attemptNews.safeParse(news)
    if (!parsed.success || this.#isOver) return
    if (parsed.data.kind === 'alive') this.#renew(parsed.data.lagMs)
    else if (this.#held.has(lease)) this.#stream.receive({ kind: parsed.data.kind, lease, token })
  }

  #renew(lagMs: number): void {
    this.#stream.receive({ kind: 'renew', leases: this.#which(), lagMs })
  }

  /** While handlers run, they say that their container lives: one whose event loop stands for a minute does not. */
  #renewIdle(): void {
    if (this.#running.size === 0) this.#renew(0)
    this.#cancelRenewal = this.#options.work.clock.after(COORDINATOR_LIMITS.renewMs, () =>
      this.#renewIdle(),
    )
  }

  #which(): { readonly lease: string; readonly token: number }[] {
    return [...this.#held.values()].map(({ lease, token }) => ({ lease, token }))
  }
}
