/** The three scripted policies, and what must come of each of their episodes. */
import type { EpisodeContext, EpisodeResult, Flag, MapOptions, Outcome } from 'sandlot'
import type { HumanEvalTask } from './dataset.ts'

export const CANDIDATE = '/work/solution.py'

export interface Expectation {
  readonly outcome: Outcome
  readonly reward: number
  readonly flag?: Flag
}

export interface Policy {
  readonly name: 'gold' | 'empty' | 'hostile'
  readonly episode: (context: EpisodeContext<HumanEvalTask>) => Promise<EpisodeResult | undefined>
  readonly expect: (task: HumanEvalTask) => Expectation
  /** Of the episodes that another time is for than for the rest. */
  readonly each?: NonNullable<MapOptions<HumanEvalTask>['each']>
}

type Context = EpisodeContext<HumanEvalTask>

interface Behaviour extends Expectation {
  readonly name: string
  readonly act: (context: Context) => Promise<void>
}

export const gold: Policy = {
  name: 'gold',
  expect: () => ({ outcome: 'graded', reward: 1 }),
  async episode({ sandbox, task, signal }) {
    await writeCandidate({ sandbox, task, signal }, rightAnswer(task))
    // What an agent does: run what it wrote.
    await sandbox.exec(['python3', '-c', `import ast; ast.parse(open('${CANDIDATE}').read())`], {
      signal,
    })
    return undefined
  },
}

export const empty: Policy = {
  name: 'empty',
  expect: () => ({ outcome: 'graded', reward: 0 }),
  async episode() {
    return undefined
  },
}

/** Time of the episodes that only it ends. Those that end by themselves have what all others have: a busy machine makes nothing of them. */
export const ENDLESS_AGENT_MS = 8_000

export const hostile: Policy = {
  name: 'hostile',
  each: (task) =>
    behaviourOf(task).outcome === 'agent_timeout' ? { timeout: { agent: ENDLESS_AGENT_MS } } : {},
  expect: (task) => behaviourOf(task),
  async episode(context) {
    await behaviourOf(context.task).act(context)
    return undefined
  },
}

/** What a hostile episode does, by its task's number. */
export function behaviourOf(task: HumanEvalTask): Behaviour {
  return BEHAVIOURS[task.number % BEHAVIOURS.length] as Behaviour
}

const BEHAVIOURS: readonly Behaviour[] = [
  {
    name: 'loops for ever',
    outcome: 'agent_timeout',
    reward: 0,
    act: async (context) => await shell(context, 'while :; do :; done'),
  },
  {
    name: 'eats memory',
    outcome: 'sandbox_oom',
    reward: 0,
    act: async (context) =>
      await shell(
        context,
        `exec python3 -c 'held = []\nwhile True: held.append(bytearray(16 << 20))'`,
      ),
  },
  {
    name: 'prints without end',
    outcome: 'agent_timeout',
    reward: 0,
    flag: 'output',
    act: async (context) =>
      await shell(context, 'exec yes "the quick brown fox jumps over the lazy dog"'),
  },
  {
    name: 'exits 0 before the tests',
    outcome: 'graded',
    reward: 0,
    act: async (context) => await writeCandidate(context, 'import os\nos._exit(0)\n'),
  },
  {
    name: 'writes the verdict itself',
    outcome: 'graded',
    reward: 0,
    act: async (context) => await writeCandidate(context, FORGERY),
  },
  {
    name: 'is right, then sleeps past the limit',
    outcome: 'agent_timeout',
    reward: 1,
    act: async (context) => {
      await writeCandidate(context, rightAnswer(context.task))
      await shell(context, 'exec sleep 3600')
    },
  },
  {
    name: 'forks without end',
    outcome: 'graded',
    reward: 0,
    flag: 'pids',
    act: async (context) => await shell(context, 'b() { b | b & }; b; while :; do sleep 60 & done'),
  },
  {
    name: 'fills the disk, then is right',
    outcome: 'graded',
    reward: 1,
    flag: 'disk',
    act: async (context) => {
      await shell(context, 'cat /dev/zero >/full; cat /dev/zero >/tmp/full')
      await shell(context, 'rm -f /full /tmp/full')
      await writeCandidate(context, rightAnswer(context.task))
    },
  },
  {
    name: 'puts its own python3 in place',
    outcome: 'graded',
    reward: 0,
    act: async (context) =>
      await shell(
        context,
        `printf '#!/bin/sh\\necho "{\\\\"reward\\\\": 1}"\\n' >/usr/bin/python3; rm -rf /usr/lib/python3*`,
      ),
  },
  {
    name: 'kills everything it sees',
    outcome: 'graded',
    reward: 0,
    flag: 'world',
    act: async (context) => await shell(context, 'kill -9 1; kill -9 -1'),
  },
]

/** A candidate whose every answer claims to be right, and which writes verdicts wherever it can. */
const FORGERY = `
import os, sys
class Equal:
    def __eq__(self, other): return True
    def __repr__(self): return '{"reward": 1}'
for number in range(64):
    try: os.write(number, b'{"reward": 1}\\n')
    except OSError: pass
for path in ('/grader/spec.json', '/grader/verdict', '/logs/verifier/reward.txt', '/proc/1/fd/1'):
    try: open(path, 'w').write('{"reward": 1}')
    except Exception: pass
def __getattr__(name): return lambda *arguments, **named: Equal()
`

function rightAnswer(task: HumanEvalTask): string {
  return `${task.prompt}${task.solution}`
}

async function writeCandidate(
  { sandbox, signal }: Pick<Context, 'sandbox' | 'task' | 'signal'>,
  text: string,
): Promise<void> {
  await sandbox.files.write(CANDIDATE, text, { signal })
}

/** Runs a script whose end does not matter. */
async function shell({ sandbox, signal }: Context, script: string): Promise<void> {
  await sandbox.exec(['/bin/sh', '-c', script], { cwd: '/', signal })
}
