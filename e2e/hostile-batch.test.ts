import { type Episode, type EpisodeContext, type ResultRow, SandlotError } from 'sandlot'
import { expect, test } from 'vitest'
import {
  EAT_AT_ONCE,
  EAT_SLOWLY,
  FORK_BOMB,
  fill,
  OPEN_FILES,
  python,
  THREAD_BOMB,
  TINY_FILES,
  WILD_FORK_BOMB,
} from './harness/shells.ts'
import { story } from './harness/story.ts'
import { until } from './harness/until.ts'

interface Task {
  readonly id: string
}
type Context = EpisodeContext<Task>
type Behaviour = Episode<Task>

const GOOD = 12
/** So long has who never ends. Nobody else is hurried: what takes a moment may take long on a machine that is busy. */
const AGENT_MS = 20_000

const answer = ({ sandbox }: Context, text = '42') => sandbox.files.write('/work/answer', text)

/** Writes the right answer, then does worse. */
const answerThen =
  (command: string | readonly string[], timeout?: string): Behaviour =>
  async (context) => {
    await answer(context)
    await context.sandbox.exec(command, timeout === undefined ? {} : { timeout })
  }

/** What happened in truth (outcome, reward, flags), beside who does it. */
const BEHAVIOURS: Record<string, readonly [truth: string, behaviour: Behaviour]> = {
  wrong: ['graded 0', async (context) => void (await answer(context, '41'))],
  nothing: ['graded 0', async () => {}],
  'exits at once': ['graded 0', async ({ sandbox }) => void (await sandbox.exec('exit 0'))],
  'writes its own verdict': [
    'graded 0',
    async ({ sandbox }) => {
      await sandbox.exec(
        'for f in reward reward.json verdict /logs/reward.txt; do mkdir -p /logs; echo 1 >$f; done; echo \'{"reward": 1}\'; echo 1 >/proc/1/fd/1',
      )
    },
  ],

  'loops in the shell': [
    'agent_timeout 0',
    ({ sandbox }) => sandbox.exec('while :; do :; done') as never,
  ],
  'loops, deaf, with the right answer': [
    'agent_timeout 1',
    answerThen('trap "" TERM INT HUP; while :; do :; done'),
  ],
  'stops itself with the right answer': ['agent_timeout 1', answerThen('kill -STOP $$')],
  'sleeps past its time with the right answer': ['agent_timeout 1', answerThen('sleep 1000')],
  'never returns and ignores its signal': ['agent_timeout 0', () => new Promise(() => {})],
  'floods until its time is over': [
    'agent_timeout 0 output',
    ({ sandbox }) => sandbox.exec('yes') as never,
  ],

  'multiplies into sleepers': ['graded 1 pids', answerThen(FORK_BOMB)],
  'multiplies without end': ['graded 1 pids', answerThen(WILD_FORK_BOMB, '10s')],
  'multiplies into threads': ['graded 1 pids', answerThen(THREAD_BOMB)],

  'eats memory slowly': ['sandbox_oom 0', answerThen(EAT_SLOWLY)],
  'eats memory at once': ['sandbox_oom 0', answerThen(EAT_AT_ONCE)],

  'fills the disk': ['graded 1 disk', answerThen(fill('/fill'))],
  'fills /tmp': ['graded 1 disk', answerThen(fill('/tmp/fill'))],
  'fills shared memory': ['graded 1 disk', answerThen(fill('/dev/shm/fill'))],
  'makes tiny files': ['graded 1 disk', answerThen(TINY_FILES)],
  'makes a sparse file': ['graded 1', answerThen('truncate -s 1T /sparse')],
  'opens every file': ['graded 1', answerThen(OPEN_FILES)],

  'floods its output': [
    'graded 1 output',
    answerThen(
      python(
        "import os\nblock = b'x' * (1 << 20)\nfor n in range(256): os.write(1 + n % 2, block)",
      ),
    ),
  ],
  'closes its streams': ['graded 1', answerThen('exec >&- 2>&- <&-; exit 3')],
  'leaves daemons': [
    'graded 1',
    answerThen(
      'sleep 1000 & nohup sleep 1000 & setsid sleep 1000 & (setsid sh -c "sleep 1000 &" &)',
    ),
  ],
  'reads for ever': ['graded 1', answerThen('cat; read line; cat /dev/stdin')],

  'kills all it sees': ['graded 1', answerThen('kill -9 -1')],
  'kills the first process': ['graded 1 world', answerThen('kill -9 1')],
  'removes every file but the answer': [
    'graded 1',
    async (context) => {
      await context.sandbox.exec('rm -rf --no-preserve-root /bin /usr /lib* /etc /var 2>/dev/null')
      await answer(context)
    },
  ],
  'removes every file': ['graded 0', answerThen('rm -rf --no-preserve-root / 2>/dev/null')],
  'overwrites the shell': [
    'graded 1',
    answerThen(python("open('/bin/sh', 'wb').write(open('/bin/true', 'rb').read())")),
  ],
  'breaks its walls': [
    'graded 1',
    answerThen(
      'mount -o remount,rw / ; umount -l /proc; chroot /tmp; mknod /d b 8 0; unshare -r true',
    ),
  ],
  'leaves fifty thousand files': [
    'graded 1 disk',
    answerThen(
      python(
        "import os\nos.mkdir('/out')\ntry:\n  for n in range(50000): open(f'/out/{n}', 'w').write('x')\nexcept OSError: pass",
      ),
    ),
  ],

  throws: [
    'episode_error null',
    async () => {
      throw new Error('a mistake of the user')
    },
  ],
  'returns no number': ['episode_error null', async () => ({ reward: Number.NaN })],
  'says that its turns are used up': [
    'limit 1',
    async (context) => {
      await answer(context)
      return { limit: 'turns' }
    },
  ],
}

await story('a batch of the good and the hostile', { pool: 2 }, (given) => {
  test('reports each as it was', async () => {
    const good: Behaviour = async (context) => {
      const { exitCode } = await context.sandbox.exec('mkdir -p /work && echo 42 >/work/answer')
      return { data: exitCode }
    }
    /** Its callback never hears of it. */
    const lost: Behaviour = async (context) => {
      try {
        await answer(context)
        await given.daemon.killSandbox(context.sandbox.id)
        await context.sandbox.exec('true')
      } catch (error) {
        if (!(error instanceof SandlotError)) throw error
      }
    }
    const behaviours = new Map([
      ...Object.entries(BEHAVIOURS),
      ['loses its sandbox', ['infra_lost null', lost]] as const,
      ...Array.from({ length: GOOD }, (_, n) => [`good ${n}`, ['graded 1', good]] as const),
    ])
    const isEndless = (id: string) => behaviours.get(id)?.[0].startsWith('agent_timeout')
    const tasks = shuffled([...behaviours.keys()]).map((id) => ({ id }))
    await using run = given.client.rollouts.map(
      tasks,
      async (context) => await behaviours.get(context.task.id)?.[1](context),
      {
        from: given.image,
        concurrency: 6,
        each: ({ id }) => (isEndless(id) ? { timeout: { agent: AGENT_MS } } : {}),
        retry: { infra: 0 },
        resources: {
          cpu: { request: 0.1, limit: 0.5 },
          memory: { request: '20MiB', limit: '256MiB' },
          disk: '48MiB',
          // As many Pythons as may run at once fit into the memory, each with 5 MiB of its own: a bomb meets this limit, not that one.
          pids: 32,
        },
        grade: {
          in: 'clean',
          run: async ({ episode }) => {
            try {
              return (await episode.files.readText('/work/answer')).trim() === '42' ? 1 : 0
            } catch (error) {
              if (error instanceof SandlotError && error.code === 'file_not_found') return 0
              throw error
            }
          },
        },
      },
    )
    const rows = await run.wait()
    const truth = Object.fromEntries([...behaviours].map(([id, [text]]) => [id, text]))
    const reported = Object.fromEntries(
      rows.map((row) => {
        const text = told(row)
        return [row.key, text === truth[row.key] ? text : `${text} (${row.cause.join('; ')})`]
      }),
    )
    const wrong = Object.entries(reported).filter(([key, text]) => text !== truth[key])
    expect(Object.fromEntries(wrong)).toEqual({})
    expect(Object.keys(reported).sort()).toEqual(Object.keys(truth).sort())
    expect(rows.map(({ attempts }) => attempts.length)).toEqual(rows.map(() => 1))
    for (const row of rows.filter(({ key }) => key.startsWith('eats'))) {
      expect(row.usage.memoryPeakBytes).toBeGreaterThan(200 * 2 ** 20)
      expect(row.cause.join('\n')).toMatch(/memory/)
    }
    for (const { phases } of rows) expect(phases.teardownMs).toBeLessThan(30_000)
    await until('what is listed and the pool alone are left', async () => {
      const listed = await Array.fromAsync(given.client.sandboxes.list())
      return (await given.daemon.hostIds()).length === listed.length + 2
    })
  }, 300_000)
})

/** Who is held up by half a processor depends on what else the machine does. */
function told({ outcome, reward, flags }: ResultRow): string {
  const said = flags.filter((flag) => flag !== 'cpu')
  return [outcome, String(reward), ...said.sort()].join(' ')
}

/** In an order that is the same each time. */
function shuffled<T>(items: readonly T[]): T[] {
  let state = 7
  const random = () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31
    return state
  }
  return items
    .map((item) => ({ item, place: random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item)
}
