import type { WorkerReport } from '@sandlot/protocol'
import type { LeaseOffer } from '../run/effect.ts'
import { noteGiven } from './truth.ts'
import type { World } from './world.ts'

/** What the user's code comes to: mostly a result, sometimes none, sometimes a lie. */
export function drawReport(world: World, offer: LeaseOffer, sandboxAlive: boolean): WorkerReport {
  const { random, scenario } = world
  const { faults } = scenario
  // The trap: code that catches the loss of its sandbox and calls that a zero.
  if (!sandboxAlive && random.chance(0.5)) return earn(world, offer, 0)
  if (!sandboxAlive) return { kind: 'threw', cause: ['the sandbox is gone'] }
  if (random.chance(faults.modelFails)) return { kind: 'model_failed', cause: ['no model'] }
  if (!random.chance(faults.agentMisbehaves)) return earn(world, offer, random.below(3) / 2)
  return random.pick<() => WorkerReport>([
    () => ({ kind: 'threw', cause: ['simulated'] }),
    () => ({ kind: 'returned', reward: Number.NaN }),
    () => ({ kind: 'returned', rewards: { a: 1, b: Number.POSITIVE_INFINITY } }),
    () => ({ kind: 'returned', limit: 'turns' }),
    () => ({ ...earn(world, offer, 1), dataJson: '{' }),
    () => ({ kind: 'invalid', cause: ['not a result'] }),
    () => ({ kind: 'aborted' }),
  ])()
}

function earn(world: World, offer: LeaseOffer, reward: number) {
  const graded = world.scenario.policy.grade !== 'none' && offer.phase === 'agent'
  if (graded) return { kind: 'returned' as const, dataJson: '{"answer":42}' }
  const { nowMs } = world.timeline
  noteGiven(world.truth, offer.sandbox, { atMs: nowMs, reward, by: 'worker' })
  return { kind: 'returned' as const, reward }
}
