import type { GradeResult, InputBody } from '../run/input.ts'
import { noteFailed, noteGiven } from './truth.ts'
import { type EffectOf, insist, type OfSandbox, type World } from './world.ts'

/** What it leaves in the place of the episode's data. */
const GRADED = '{"steps":[]}'

/** The daemon's own grader: a command in the sandbox, found again by its token. */
export interface FakeGrader {
  start(effect: EffectOf<'start_grade'>): void
  cancel(token: number): void
}

export function createFakeGrader(world: World, isAlive: (of: OfSandbox) => boolean): FakeGrader {
  const { timeline, random, scenario, truth } = world
  const { faults } = scenario
  const started = new Set<number>()
  const answers = new Map<number, InputBody>()
  const cancelled = new Set<number>()

  function answer(token: number, input: InputBody): void {
    answers.set(token, input)
    insist(
      world,
      input,
      () => answers.get(token) === input && !cancelled.has(token),
      () => answers.delete(token),
    )
  }

  function verdict(effect: EffectOf<'start_grade'>): GradeResult {
    if (!isAlive(effect)) return { kind: 'failed', cause: 'the sandbox is gone' }
    const { sandbox, token } = effect
    if (random.chance(faults.graderFails)) {
      const failure = random.pick(FAILURES)
      noteFailed(truth, sandbox, failure.kind === 'failed' && failure.fault === 'platform')
      return failure
    }
    const reward = random.next()
    noteGiven(truth, sandbox, { atMs: timeline.nowMs, reward, by: 'daemon', token })
    return { kind: 'verdict', reward }
  }

  return {
    start(effect) {
      const { episode, attempt, token } = effect
      if (started.has(token)) return
      started.add(token)
      const slow = random.chance(faults.graderSlow)
      const delayMs = slow ? random.between(20_000, 40_000) : random.spread(scenario.gradeMs, 0.7)
      timeline.after(delayMs, () => {
        if (cancelled.has(token)) return
        const data = random.chance(0.2) ? { dataJson: GRADED } : {}
        answer(token, { type: 'graded', episode, attempt, token, result: verdict(effect), ...data })
      })
    },
    cancel(token) {
      // Some graders can't be stopped: what they find in the end is refused by its token.
      if (random.chance(0.5)) cancelled.add(token)
    },
  }
}

const FAILURES: readonly GradeResult[] = [
  { kind: 'failed', cause: 'simulated' },
  { kind: 'failed', cause: 'simulated', fault: 'platform' },
  { kind: 'timed_out', said: 'simulated' },
  { kind: 'verdict', reward: 'yes' },
]
