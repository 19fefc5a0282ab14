/** The episodes of the chaos bench as commands, which the daemon runs itself. */
import type { CommandGrade, ProgramOptions, ProgramStep, TaskOptions } from 'sandlot'
import type { BehaviourName, ChaosDriver, ChaosTask } from './behaviours.ts'
import { FAKE_ACTS, type FakeAct } from './fake-acts.ts'
import { ASK_MODEL } from './model.ts'
import { type ChaosWork, chaosOptions, INFRA_RETRIES, RIGHT, SHELL } from './work.ts'

const WRONG = '41'
const STEP_MS = 2_000

/** `model`: address of the one that they ask. */
export function programOptions(work: ChaosWork, model: string): ProgramOptions<ChaosTask> {
  const { grade: _, ...options } = chaosOptions(work)
  const says = commandsOf(work.driver)
  return {
    ...options,
    model: { url: model },
    // Calls that break off with the daemon are nobody's failure.
    retry: { ...options.retry, model: INFRA_RETRIES },
    key: ({ id }) => id,
    command: says('idle'),
    grade: { run: says('grade'), in: 'world' },
    each: ({ does }) => doing(does, says, work),
  }
}

type Says = (...acts: FakeAct[]) => readonly string[]

function doing(does: BehaviourName, says: Says, { from, driver }: ChaosWork): TaskOptions {
  // A grader of the second kind has nothing of the episode but what it is passed.
  const elsewhere = driver === 'gvisor' ? { from, pass: ['/work'] } : {}
  const grade = { run: says('grade') }
  const step = (name: string, ...acts: FakeAct[]) => ({ name, run: says(...acts) })
  const steps = (first: Partial<ProgramStep>): TaskOptions => ({
    steps: [
      { ...step('one', 'right'), grade, ...first },
      { ...step('two', 'right'), grade: { ...grade, ...elsewhere } },
      step('three', 'right'),
    ],
    rewards: 'mean',
  })
  const graded = (run: CommandGrade['run']) => ({ command: says('right'), grade: { run } })
  const deeds: Partial<Record<BehaviourName, () => TaskOptions>> = {
    'answers rightly': () => ({ command: says('right') }),
    'answers wrongly': () => ({ command: says('wrong') }),
    'does nothing': () => ({ command: says('idle') }),
    'loops for ever': () => ({ command: says('loop') }),
    'answers rightly, then loops': () => ({ command: says('right', 'loop') }),
    'loses its sandbox': () => ({ command: says('lose') }),
    'eats its memory': () => ({ command: says('oom') }),
    'breaks its grader': () => graded(says('missing')),
    'holds up its grader': () => graded(says('loop')),
    'multiplies without end': () => ({ command: says('right', 'multiply') }),
    'fills its disk': () => ({ command: says('right', 'fill') }),
    'kills all it sees': () => ({ command: says('right', 'kill-all') }),
    'asks its model': () => ({ command: ASK_MODEL }),
    'can not be run': () => ({ command: says('missing') }),
    'takes its steps': () => steps({}),
    'falls short in a step': () => steps({ run: says('wrong'), least: { reward: 1 } }),
    'uses up a step': () => steps({ run: says('right', 'loop'), timeout: STEP_MS }),
  }
  const deed = deeds[does]
  if (deed === undefined) throw new Error(`no program does that: ${does}`)
  return deed()
}

function commandsOf(driver: ChaosDriver): Says {
  if (driver === 'fake') return (...acts) => [FAKE_ACTS, ...acts]
  return (...acts) => ['sh', '-c', acts.map((act) => shellOf(act)).join('\n')]
}

/** As a line of a shell. */
function shellOf(act: FakeAct): string {
  switch (act) {
    case 'idle':
      return ':'
    case 'missing':
      return 'exit 127'
    case 'right':
      return write(RIGHT)
    case 'wrong':
      return write(WRONG)
    case 'grade':
      return `[ "$(cat /work/answer 2>/dev/null)" = ${RIGHT} ]`
    case 'lose':
      throw new Error('a program reaches no other process')
    default:
      return SHELL[act].map((word) => `'${word}'`).join(' ')
  }
}

function write(text: string): string {
  return `mkdir -p /work && printf ${text} > /work/answer`
}
