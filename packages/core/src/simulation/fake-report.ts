import type { WorkerReport } from '@sandlot/protocol'
import type { LeaseOffer } from '../run/effect.ts'
import { noteGiven } from './truth.ts'
import type { World } from './world.ts'

/** What the user's code comes to: mostly a result, sometimes none, sometimes a lie. */
export function drawReport(world: World, offer: LeaseOffer, sandboxAlive: boolean): WorkerReport {
  const { random, scenario } = world
  const { faults } = scenario
  // The trap: code that catches the loss of its sandbox and calls that a result.
  if (!sandboxAlive && random.chance(0.5)) return earn(world, offer)
  if (!sandboxAlive) return { kind: 'threw', cause: ['the sandbox is gone'] }
  if (random.chance(faults.modelFails)) return { kind: 'model_failed', cause: ['no model'] }
  if (!random.chance(faults.agentMisbehaves)) return earn(world, offer)
  return random.pick<() => WorkerReport>([
    () => ({ kind: 'threw', cause: ['simulated'] }),
    () => ({ kind: 'returned', reward: Number.NaN }),
    () => ({ kind: 'returned', rewards: { a: 1, b: Number.POSITIVE_INFINITY } }),
    () => ({ kind: 'returned', limit: 'turns' }),
    () => ({ ...earn(world, offer), dataJson: '{' }),
    () => ({ kind: 'invalid', cause: ['not a result'] }),
    () => ({ kind: 'aborted' }),
  ])()
}

/** No two rewards are the same, so that the judge sees where one came from. */
function earn(world: World, offer: LeaseOffer) {
  const graded = world.scenario.policy.grade !== 'none' && offer.phase === 'agent'
  if (graded) return { kind: 'returned' as const, dataJson: '{"answer":42}' }
  const { nowMs } = world.timeline
  const reward = world.random.next()
  const { sandbox, token } = offer
  noteGiven(world.truth, sandbox, { atMs: nowMs, reward, by: 'worker', token })
  return { kind: 'returned' as const, reward }
}
