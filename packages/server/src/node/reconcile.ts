import type { Clock } from '@sandlot/engine'
import type { Reconciled, RuntimeDriver } from '@sandlot/runtime'
import type { Logger } from 'pino'
import { SERVER_LIMITS } from '../limits.ts'
import type { Entry } from './entry.ts'
import type { NodeNumbers } from './numbers.ts'
import type { SandboxPool } from './pool/pool.ts'
import type { RefusedPacketsNews } from './refused-packets.ts'

export interface ReconcileParts {
  readonly driver: Pick<RuntimeDriver, 'reconcile'>
  readonly pool: Pick<SandboxPool, 'holds'>
  readonly refused: Pick<RefusedPacketsNews, 'tell'>
  readonly clock: Clock
  readonly log: Logger
  readonly numbers: NodeNumbers
}

const SAID: Readonly<Record<keyof Reconciled, string>> = {
  removed: 'something on this machine was nobody’s, and is removed',
  stuck: 'something on this machine is nobody’s, and could not be removed',
  dead: 'nothing of a sandbox ran any more; it is ended',
  unwanted: 'nobody wanted a sandbox that ran; it is ended',
}

/** Looks now and then, until disposed, whether the machine has what this node believes, and nothing else; the driver puts it right. */
export function keepReconciled(
  { driver, pool, refused, clock, log, numbers }: ReconcileParts,
  entries: ReadonlyMap<string, Entry>,
): Disposable {
  const closing = new AbortController()
  const { signal } = closing
  let cancel = clock.after(SERVER_LIMITS.reconcileEveryMs, look)

  function look(): void {
    void reconcile()
      .catch((err) => {
        if (!signal.aborted) log.warn({ err }, 'the machine could not be looked at')
      })
      .then(() => {
        if (!signal.aborted) cancel = clock.after(SERVER_LIMITS.reconcileEveryMs, look)
      })
  }
  async function reconcile(): Promise<void> {
    const known = new Set([...entries.values()].map(({ sandbox }) => sandbox?.hostId))
    const isWanted = (hostId: string) => known.has(hostId) || pool.holds(hostId)
    const found = await driver.reconcile({ isWanted, signal })
    for (const what of Object.keys(SAID) as (keyof Reconciled)[]) {
      for (const one of found[what]) log.warn({ found: one }, SAID[what])
      if (found[what].length > 0) numbers.reconciled(what, found[what].length)
    }
    await refused.tell(entries)
  }
  return {
    [Symbol.dispose]() {
      closing.abort()
      cancel()
    },
  }
}
