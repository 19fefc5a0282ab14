/** The episodes of the chaos bench, as a worker runs them. */
import {
  type EpisodeContext,
  type EpisodeResult,
  type GradeContext,
  type MapOptions,
  ModelError,
  type Sandbox,
  SandlotError,
} from 'sandlot'
import type { BehaviourName, ChaosDriver, ChaosTask } from './behaviours.ts'
import { FAKE_ACTS } from './fake-acts.ts'
import { killSandbox } from './sandboxes.ts'

export interface ChaosWork {
  readonly run: string
  readonly driver: ChaosDriver
  readonly from: string
  readonly concurrency: number
  readonly agentMs: number
  /** Of the daemon. */
  readonly runDirectory: string
}

type Context = EpisodeContext<ChaosTask>
type Act = 'loop' | 'oom' | 'lose' | 'multiply' | 'fill' | 'kill-all'

/** Loses of its sandboxes that nobody in the episode means, each paid by another attempt. */
export const INFRA_RETRIES = 6
export const RIGHT = '42'
const never = () => new Promise<never>(() => {})

export const SHELL: Readonly<Record<Exclude<Act, 'lose'>, readonly string[]>> = {
  loop: ['sh', '-c', 'while :; do sleep 1; done'],
  oom: ['python3', '-c', 'b = []\nwhile True: b.append(bytearray(b"x") * (16 << 20))'],
  multiply: [
    'python3',
    '-c',
    'import os, time\nend = time.time() + 2\nwhile time.time() < end:\n  try: os.fork()\n  except OSError: time.sleep(0.05)',
  ],
  fill: [
    'python3',
    '-c',
    'f = open("/fill", "wb", 0)\ntry:\n  while True: f.write(bytes(1 << 20))\nexcept OSError: pass',
  ],
  'kill-all': ['sh', '-c', 'kill -9 -1'],
}

export function chaosOptions(work: ChaosWork) {
  return {
    name: work.run,
    ifExists: 'attach',
    from: work.from,
    concurrency: work.concurrency,
    timeout: { agent: work.agentMs, grade: work.agentMs / 2, create: '2m', model: '1m' },
    retry: { infra: INFRA_RETRIES, model: 1, grade: 1 },
    resources: { memory: '256MiB', disk: '48MiB', pids: 32 },
    grade: { in: 'world', run: chaosGrade },
  } satisfies MapOptions<ChaosTask>
}

/** `runDirectory`: where the episode can end its sandbox behind the daemon's back; absent inside of a container. */
export function chaosEpisode(work: Pick<ChaosWork, 'driver'> & { readonly runDirectory?: string }) {
  const act = async (sandbox: Sandbox, what: Act): Promise<void> => {
    if (work.driver === 'fake') return void (await sandbox.exec([FAKE_ACTS, what]))
    if (what !== 'lose') return void (await sandbox.exec(SHELL[what]))
    if (work.runDirectory === undefined) throw new Error('a container reaches no other process')
    await killSandbox(work.runDirectory, sandbox.id)
    await sandbox.exec('sleep 60')
  }
  const answer = ({ sandbox, signal }: Context, text = RIGHT) =>
    sandbox.files.write('/work/answer', text, { signal })
  const answerThen = async (context: Context, what: Act) => {
    await answer(context)
    await act(context.sandbox, what)
  }
  const deeds: Partial<Record<BehaviourName, (context: Context) => Promise<unknown>>> = {
    'answers rightly': answer,
    'answers wrongly': (context) => answer(context, '41'),
    'does nothing': async () => {},
    throws: async () => {
      throw new Error('a mistake of the user')
    },
    'uses up its turns': answer,
    'loops for ever': ({ sandbox }) => act(sandbox, 'loop'),
    'answers rightly, then loops': (context) => answerThen(context, 'loop'),
    'never returns': never,
    'loses its sandbox': ({ sandbox }) => act(sandbox, 'lose'),
    'loses its sandbox and says nothing': async (context) => {
      try {
        await answerThen(context, 'lose')
      } catch (error) {
        if (!(error instanceof SandlotError)) throw error
      }
    },
    'eats its memory': ({ sandbox }) => act(sandbox, 'oom'),
    'fails its model': async ({ model }) => {
      await model(() => {
        throw new ModelError('the model is overloaded')
      })
    },
    'breaks its grader': answer,
    'holds up its grader': answer,
    'multiplies without end': (context) => answerThen(context, 'multiply'),
    'fills its disk': (context) => answerThen(context, 'fill'),
    'kills all it sees': (context) => answerThen(context, 'kill-all'),
  }
  return async (context: Context): Promise<EpisodeResult> => {
    const deed = deeds[context.task.does]
    if (deed === undefined) throw new Error(`no code does that: ${context.task.does}`)
    await deed(context)
    return context.task.does === 'uses up its turns' ? { limit: 'turns' } : {}
  }
}

export async function chaosGrade({
  task,
  episode,
  signal,
}: GradeContext<ChaosTask>): Promise<number> {
  if (task.does === 'breaks its grader') throw new Error('the grader has a mistake')
  if (task.does === 'holds up its grader') return await never()
  try {
    return (await episode.files.readText('/work/answer', { signal })) === RIGHT ? 1 : 0
  } catch (error) {
    if (error instanceof SandlotError && error.code === 'file_not_found') return 0
    throw error
  }
}
