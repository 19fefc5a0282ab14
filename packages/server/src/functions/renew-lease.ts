import type { Clock, Engine } from '@sandlot/engine'
import { FUNCTION_LIMITS } from './limits.ts'
import type { Delivery } from './task.ts'

/** Keeps a message from being delivered to another, until disposed. */
export function renewLease(
  { engine, clock }: { readonly engine: Engine; readonly clock: Clock },
  delivery: Delivery,
): Disposable {
  const { leaseMs, renewMs } = FUNCTION_LIMITS
  let cancel = () => {}
  const arm = () => {
    cancel = clock.after(renewMs, () => {
      // One that ran out is found by the next look for tasks.
      engine.queue.extend(delivery.lease, leaseMs).catch(() => {})
      arm()
    })
  }
  arm()
  return { [Symbol.dispose]: () => cancel() }
}
