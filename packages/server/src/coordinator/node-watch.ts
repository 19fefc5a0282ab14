import { ownsSandbox } from '@sandlot/core'
import { isAttempt } from '../node/owners.ts'
import type { NodeSandbox, SandboxEnded } from '../node/port.ts'
import { attemptOfSandbox } from './ids.ts'
import { COORDINATOR_LIMITS } from './limits.ts'
import type { LiveRun } from './live-run.ts'
import type { Registry } from './registry.ts'
import type { CoordinatorServices } from './services.ts'

/**
 * Keeps runs and node of one mind: endings that nobody asked for go to their runs as they happen; now and then both sides are
 * compared, because a message may be lost and an owner may not.
 */
export interface NodeWatch {
  /** Compares at once; from then on listens and compares by itself until the coordinator's signal aborts. */
  start(): Promise<void>
}

export function openNodeWatch(services: CoordinatorServices, registry: Registry): NodeWatch {
  const { node, clock, signal, warn } = services

  async function listen() {
    while (!signal.aborted) {
      try {
        for await (const ended of node.endings({ signal })) tell(ended)
      } catch (error) {
        if (signal.aborted) return
        warn('the node’s news of endings broke off', error)
      }
      await rest(COORDINATOR_LIMITS.feedRetryMs)
      await compareSafely()
    }
  }

  function tell(ended: SandboxEnded) {
    const live = registry.findBySandbox(ended.sandbox)
    if (live === undefined || live === 'unknown') return
    const of = attemptOfSandbox(live.record.id, ended.sandbox)
    if (of) live.sandboxEnded(of, ended)
  }

  async function listenToModels() {
    while (!signal.aborted) {
      try {
        for await (const call of node.modelCalls({ signal })) {
          const live = registry.findBySandbox(call.sandbox)
          if (live === undefined || live === 'unknown') continue
          const of = attemptOfSandbox(live.record.id, call.sandbox)
          if (of) live.modelCalled(of, call)
        }
      } catch (error) {
        if (signal.aborted) return
        warn('the node’s news of models broke off', error)
      }
      await rest(COORDINATOR_LIMITS.feedRetryMs)
    }
  }

  async function compareFromTimeToTime() {
    while (!signal.aborted) {
      await rest(COORDINATOR_LIMITS.compareEveryMs)
      await compareSafely()
    }
  }

  async function compareSafely() {
    if (signal.aborted) return
    await compare().catch((error: unknown) => {
      if (!signal.aborted) warn('could not compare the runs with what the node holds', error)
    })
  }

  async function compare() {
    const held = await node.list()
    const alive = new Set(held.map(({ sandbox }) => sandbox))
    for (const sandbox of held) {
      if (isNobodys(sandbox)) await releaseNobodys(sandbox)
    }
    for (const live of registry.all()) await findLost(live, alive)
  }

  /** Made for an attempt that is over, or for a run that is: its release was lost on the way. */
  function isNobodys({ sandbox, owner }: NodeSandbox): boolean {
    if (!isAttempt(owner)) return false
    const live = registry.findBySandbox(sandbox)
    if (live === 'unknown') return false
    const of = live && attemptOfSandbox(live.record.id, sandbox)
    return !(live && of && ownsSandbox(live.actor.run, { ...of, sandbox }))
  }

  async function releaseNobodys({ sandbox }: NodeSandbox) {
    await node
      .release({ sandbox, reason: 'no attempt wants it any more' }, { signal })
      .catch((error: unknown) => warn(`could not release ${sandbox}`, error))
  }

  async function findLost(live: LiveRun, alive: ReadonlySet<string>) {
    for (const { index, attempt, phase, current } of [...live.actor.run.index.slots]) {
      if (!current?.sandbox || phase === 'releasing' || alive.has(current.sandbox)) continue
      const { sandbox } = current
      const found = await node.find(sandbox)
      if (found !== undefined && !('kind' in found)) continue
      if (found === undefined) live.sandboxVanished({ episode: index, attempt }, sandbox)
      else live.sandboxEnded({ episode: index, attempt }, found)
    }
  }

  function rest(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = clock.after(delayMs, wake)
      signal.addEventListener('abort', wake, { once: true })
      function wake() {
        cancel()
        signal.removeEventListener('abort', wake)
        resolve()
      }
    })
  }

  return {
    async start() {
      void listen()
      void listenToModels()
      await compareSafely()
      void compareFromTimeToTime()
    },
  }
}
