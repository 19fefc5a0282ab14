import { createRandom, type Random } from '../simulation/random.ts'
import { drawMs, medianMsOf } from './latency.ts'
import type { PoolSetting } from './pool-setting.ts'

/** What becomes of one attempt, whenever and wherever it runs: the same seed gives the same in every pool. */
export interface AttemptFate {
  readonly createMs: number
  /** Without the model's time. */
  readonly agentMs: number
  readonly gradeMs: number
  readonly reward: number
  /** Its sandbox is lost after this share of its agent's time. */
  readonly lostAfter: number | null
  /** For its calls of the model. */
  readonly random: Random
}

/** `episode`: its position in the run. `attempt` from 1: the policy is asked anew. */
export function fateOf(
  setting: PoolSetting,
  of: { readonly episode: number; readonly attempt: number },
): AttemptFate {
  const { seed, agent, create, grade, losses, hardness } = setting
  const { task, member } = memberAt(setting, of.episode)
  const random = createRandom(mix(seed, task, member, of.attempt))
  const agentMs = drawMs(agent, random)
  const times = agentMs / Math.max(medianMsOf(agent), Number.MIN_VALUE)
  const reward = random.chance(1 / (1 + times ** hardness)) ? 1 : 0
  return {
    agentMs,
    reward,
    createMs: drawMs(create, random),
    gradeMs: grade === null ? 0 : drawMs(grade, random),
    lostAfter: random.chance(losses) ? random.next() : null,
    random,
  }
}

/** Which task an episode is of, and which member of its group: with more members in a group the first of them stay who they are. */
function memberAt({ group }: PoolSetting, episode: number) {
  const members = group ? group.size + group.extra : 1
  return { task: Math.floor(episode / members), member: episode % members }
}

/** FNV-1a over the numbers: neighbours give streams that have nothing to do with one another. */
function mix(...numbers: readonly number[]): number {
  let hash = 0x811c9dc5
  for (const number of numbers) {
    for (let shift = 0; shift < 32; shift += 8) {
      hash = Math.imul(hash ^ ((number >>> shift) & 0xff), 0x01000193)
    }
    hash = Math.imul(hash ^ 0xff, 0x01000193)
  }
  return hash >>> 0
}
