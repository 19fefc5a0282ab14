import { type Lease, newId } from '@sandlot/protocol'
import type { Coordinator } from '../inside.ts'
import type { Turnstile } from './turnstile.ts'

const RENEW_MS = 10_000
const RENEW_LEASES_MAX = 1_000

/** A worker without a connection: every lease waits at the turnstile and is then reported with reward 1. */
export async function startWorker(
  coordinator: Coordinator,
  options: { readonly run: string; readonly slots: number; readonly turnstile: Turnstile },
): Promise<Disposable> {
  const { run, slots, turnstile } = options
  const held = new Map<string, Lease>()
  const stream = await coordinator.attachWorker(
    'default',
    { run, worker: newId('worker'), slots, held: [] },
    {
      send: (event) => {
        if (event.kind === 'draining') return
        if (event.kind !== 'lease') return void held.delete(event.lease)
        const { lease } = event
        held.set(lease.lease, lease)
        turnstile.enter(() => {
          const { lease: id, token } = lease
          const measured = { agentMs: 1, modelMs: 0, lagMs: 0, flags: [] }
          const report = { kind: 'returned', reward: 1 } as const
          stream.receive({ kind: 'report', lease: id, token, report, ...measured })
        })
      },
    },
  )
  const renewing = setInterval(() => {
    const leases = [...held.values()].map(({ lease, token }) => ({ lease, token }))
    for (let start = 0; start < leases.length; start += RENEW_LEASES_MAX) {
      const some = leases.slice(start, start + RENEW_LEASES_MAX)
      stream.receive({ kind: 'renew', leases: some, lagMs: 0 })
    }
  }, RENEW_MS)
  return { [Symbol.dispose]: () => clearInterval(renewing) }
}
