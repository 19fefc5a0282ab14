/** What a client has to say that is neither a result nor an error of a call. */
import { emitWarning } from 'node:process'
import { formatDuration, LIMITS } from '@sandlot/protocol'

/**
 * - `daemon_away`: it does not answer, and what was under way is tried again
 * - `daemon_back`: it answers again
 * - `daemon_draining`: it admits nothing more and will stop; what runs goes on, and waits for its return after that
 * - `process_stood_still`: the event loop of this process, a worker, did; one that is silent for long loses its attempts to others
 */
export interface Notice {
  readonly kind: 'daemon_away' | 'daemon_back' | 'daemon_draining' | 'process_stood_still'
  /** One line for a person. */
  readonly message: string
}

/** An outage shorter than this is a connection that broke, and no news. */
const AWAY_SAID_MS = 1_000

/** Twice the time between heartbeats: no sum of short delays, but a computation that holds it up, or a process that was stopped. */
const STOOD_SAID_MS = 20_000

/** Says each thing once, however many calls of the client meet it. */
export class Notices {
  readonly #tell: (notice: Notice) => void
  #lostAtMs: number | undefined
  #isAwaySaid = false
  #isDrainSaid = false

  /** Default: a warning of the process, which Node.js prints on its standard error. */
  constructor(tell: ((notice: Notice) => void) | undefined) {
    this.#tell = tell ?? (({ message }) => emitWarning(message, 'SandlotNotice'))
  }

  /** A call got no answer, and is tried again. */
  lost(error: unknown): void {
    this.#lostAtMs ??= performance.now()
    if (this.#isAwaySaid || performance.now() - this.#lostAtMs < AWAY_SAID_MS) return
    this.#isAwaySaid = true
    const why = error instanceof Error ? ` (${error.message})` : ''
    this.#tell({ kind: 'daemon_away', message: `the daemon does not answer${why}, retrying` })
  }

  /** A call was answered. */
  met(): void {
    this.#lostAtMs = undefined
    if (!this.#isAwaySaid) return
    this.#isAwaySaid = false
    this.#isDrainSaid = false
    this.#tell({ kind: 'daemon_back', message: 'the daemon answers again' })
  }

  /** The event loop ran so late since this was told last. */
  ranLate(lagMs: number): void {
    if (lagMs < STOOD_SAID_MS) return
    const lost = `a worker that is silent for ${formatDuration(LIMITS.leaseMs)} loses its attempts to others`
    const message = `the event loop of this process stood still for ${formatDuration(lagMs)}: ${lost}; compute in a thread of its own`
    this.#tell({ kind: 'process_stood_still', message })
  }

  draining(): void {
    if (this.#isDrainSaid) return
    this.#isDrainSaid = true
    const message = 'the daemon is draining: it admits nothing more until it is started again'
    this.#tell({ kind: 'daemon_draining', message })
  }
}
