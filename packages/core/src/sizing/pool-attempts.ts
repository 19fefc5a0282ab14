import type { Effect, LeaseOffer } from '../run/effect.ts'
import type { InputBody } from '../run/input.ts'
import type { Timeline } from '../simulation/timeline.ts'
import { fateOf } from './fate.ts'
import { createModelServer } from './model-server.ts'
import type { PoolSetting } from './pool-setting.ts'

export const NODE = 'node'
const TEARDOWN_MS = 20

/** The sandboxes and agents of a pool: each does in its time what its fate says, and tells core. */
export interface PoolAttempts {
  perform(effect: Effect): void
}

export function createPoolAttempts(
  setting: PoolSetting,
  timeline: Timeline,
  tell: (input: InputBody) => void,
): PoolAttempts {
  const model = setting.model && createModelServer(timeline, setting.model)
  /** Leases and grades in progress, by their tokens. */
  const working = new Set<number>()

  function acquire({ episode, attempt }: Extract<Effect, { type: 'acquire_sandbox' }>): void {
    const { createMs } = fateOf(setting, { episode, attempt })
    const sandbox = `sb_${episode}_${attempt}`
    timeline.after(createMs, () =>
      tell({ type: 'sandbox_ready', episode, attempt, sandbox, node: NODE, createMs }),
    )
  }

  function release(effect: Extract<Effect, { type: 'release_sandbox' }>): void {
    const { episode, attempt, sandbox } = effect
    timeline.after(TEARDOWN_MS, () => tell({ type: 'torn_down', episode, attempt, sandbox }))
  }

  /** The agent's own time is cut in even parts, a call of the model between any two. */
  function work(offer: LeaseOffer): void {
    const { episode, attempt, token, sandbox } = offer
    const lease = { episode, attempt, token }
    const fate = fateOf(setting, offer)
    const calls = model && setting.model ? setting.model.calls : 0
    const partMs = fate.agentMs / (calls + 1)
    working.add(token)
    tell({ type: 'lease_taken', ...lease })
    if (fate.lostAfter !== null) {
      const died = { cause: 'lost', evidence: 'simulated' } as const
      timeline.after(fate.agentMs * fate.lostAfter, () => {
        if (working.delete(token))
          tell({ type: 'sandbox_lost', episode, attempt, sandbox, fate: died })
      })
    }
    const act = (left: number) =>
      timeline.after(partMs, () => {
        if (!working.has(token)) return
        if (left > 0) call(left)
        else report({ kind: 'returned', ...(setting.grade ? {} : { reward: fate.reward }) })
      })
    const call = (left: number) => {
      tell({ type: 'model_started', ...lease })
      model?.ask(fate.random, (ok) => {
        if (!working.has(token)) return
        if (!ok) return report({ kind: 'model_failed', cause: ['simulated'] })
        tell({ type: 'model_ended', ...lease })
        act(left - 1)
      })
    }
    const report = (found: Extract<InputBody, { type: 'reported' }>['report']) => {
      working.delete(token)
      tell({ type: 'reported', ...lease, report: found })
    }
    act(calls)
  }

  function grade(effect: Extract<Effect, { type: 'start_grade' }>): void {
    const { episode, attempt, token } = effect
    const { gradeMs, reward } = fateOf(setting, effect)
    working.add(token)
    timeline.after(gradeMs, () => {
      if (!working.delete(token)) return
      tell({ type: 'graded', episode, attempt, token, result: { kind: 'verdict', reward } })
    })
  }

  return {
    perform(effect) {
      if (effect.type === 'acquire_sandbox') acquire(effect)
      else if (effect.type === 'offer_lease') work(effect)
      else if (effect.type === 'start_grade') grade(effect)
      else if (effect.type === 'release_sandbox') release(effect)
      else if (effect.type === 'cancel_grade' || effect.type === 'cancel_worker') {
        working.delete(effect.token)
      }
    },
  }
}
