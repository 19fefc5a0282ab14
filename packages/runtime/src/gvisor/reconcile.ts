import { setImmediate as turn } from 'node:timers/promises'
import type { Reconciled, ReconcileOptions } from '../driver.ts'
import { DRIVER_FINDERS, describeLeftover, findLeftovers } from '../leftovers/find.ts'
import type { Leftover } from '../leftovers/leftover.ts'
import { RUNTIME_LIMITS } from '../limits.ts'
import type { GvisorContext } from './context.ts'
import { sweepDiskNames } from './disk-files.ts'
import type { Instance } from './instance.ts'

/**
 * Compares what a driver believes with what the machine has, one look a call. Whatever begins or ends is between the two for a moment,
 * so nothing is acted on that was not found by the look before too.
 *
 * | on the machine | in the register | then |
 * |---|---|---|
 * | cgroup, mount, folder | no | removed: its sandbox has ended, and this could not be removed then |
 * | nothing in its cgroup | lives | ended: its fate is `lost` |
 * | lives | lives, and nobody wants it for a long time | ended |
 */
export class Reconciler {
  readonly #context: GvisorContext
  /** What the last look found of nobody, by what it is. */
  #strays: ReadonlySet<string> = new Set()
  #dead: ReadonlySet<string> = new Set()
  /** Since when nobody wants them. Monotonic, milliseconds. */
  #unwanted = new Map<string, number>()
  #looking: Promise<unknown> = Promise.resolve()

  constructor(context: GvisorContext) {
    this.#context = context
  }

  /** Looks come one after the other. */
  look(options: ReconcileOptions): Promise<Reconciled> {
    const looked = this.#looking.then(() => this.#look(options))
    this.#looking = looked.catch(() => {})
    return looked
  }

  async #look({ isWanted, signal }: ReconcileOptions): Promise<Reconciled> {
    await this.#context.ready()
    signal?.throwIfAborted()
    const { removed, stuck } = await this.#removeStrays(signal)
    const dead = await this.#endDead(signal)
    await this.#guardOpen()
    const unwanted = await this.#endUnwanted(isWanted)
    return { removed, stuck, dead, unwanted }
  }

  async #removeStrays(signal: AbortSignal | undefined) {
    const { options, instances } = this.#context
    const { stateDirectory, dataDirectory } = options
    const found = await findLeftovers({ stateDirectory }, DRIVER_FINDERS)
    const strays = found.filter(({ hostId }) => hostId === undefined || !instances.has(hostId))
    const again = strays.filter((each) => this.#strays.has(describeLeftover(each)))
    this.#strays = new Set(strays.map(describeLeftover))
    const removed: string[] = []
    const stuck: string[] = []
    for (const stray of again.slice(0, RUNTIME_LIMITS.straysAtOnce)) {
      signal?.throwIfAborted()
      const lines = (await isGone(stray)) ? removed : stuck
      lines.push(describeLeftover(stray))
    }
    const names = await sweepDiskNames(dataDirectory, Date.now())
    return { removed: [...removed, ...names.map((name) => `disk ${name}`)], stuck }
  }

  async #endDead(signal: AbortSignal | undefined): Promise<readonly string[]> {
    const empty: Instance[] = []
    let looks = 0
    for (const instance of [...this.#context.instances.values()]) {
      signal?.throwIfAborted()
      if (await isDead(instance)) empty.push(instance)
      // A thousand looks in a row would hold up whoever waits for this process.
      if (++looks % RUNTIME_LIMITS.looksAtOnce === 0) await turn()
    }
    const dead = empty.filter(({ hostId }) => this.#dead.has(hostId))
    this.#dead = new Set(empty.map(({ hostId }) => hostId))
    for (const instance of dead) await instance.end('lost', 'none of its processes was left')
    return dead.map(({ hostId }) => hostId)
  }

  /** Rules that somebody took away come back, or what they are for ends. */
  async #guardOpen(): Promise<void> {
    const all = [...this.#context.instances.values()]
    const open = all.filter(({ state, ending }) => state.owner?.spec.network && !ending)
    if (open.length === 0) return
    try {
      await this.#context.openNetworks.guard()
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      for (const instance of open) await instance.end('lost', why)
    }
  }

  async #endUnwanted(isWanted: ReconcileOptions['isWanted']): Promise<readonly string[]> {
    const nowMs = performance.now()
    const all = [...this.#context.instances.values()]
    const unwanted = all.filter(({ hostId, ending }) => !ending && !isWanted(hostId))
    this.#unwanted = new Map(
      unwanted.map(({ hostId }) => [hostId, this.#unwanted.get(hostId) ?? nowMs]),
    )
    const over = unwanted.filter(
      ({ hostId }) => (this.#unwanted.get(hostId) ?? nowMs) <= nowMs - RUNTIME_LIMITS.unwantedMs,
    )
    for (const instance of over) await instance.end('stop', 'nobody wanted it')
    return over.map(({ hostId }) => hostId)
  }
}

async function isGone(stray: Leftover): Promise<boolean> {
  return await stray.remove().catch(() => false)
}

/** One that starts, or whose memory is being saved, may have no process for a moment. */
async function isDead({ ending, state, leaf }: Instance): Promise<boolean> {
  if (ending || state.sentryPid === 0 || state.saving) return false
  return (await leaf.processes().catch(() => [0])).length === 0
}
