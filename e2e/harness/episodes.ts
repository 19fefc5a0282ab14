/** Episodes and a grader that tests run in containers: only types come from anywhere else. */
import type { EpisodeContext, EpisodeResult, GradeContext } from 'sandlot'

export interface EpisodeTask {
  readonly id: string
  /** Of a sandbox that is none of this episode's. */
  readonly other?: string
}

/** Does what its task is called. */
export async function episode(context: EpisodeContext<EpisodeTask>): Promise<EpisodeResult> {
  const { task } = context
  const [kind = ''] = task.id.split('-')
  return (await (KINDS[kind] ?? KINDS.right)?.(context)) ?? {}
}

/** Reads what the episode left, in the grader's own world. */
export async function grade({ sandbox, task }: GradeContext<EpisodeTask>): Promise<number> {
  const { exitCode } = await sandbox.exec(['grep', '-qx', task.id, '/answer'])
  return exitCode === 0 ? 1 : 0
}

type Kind = (context: EpisodeContext<EpisodeTask>) => Promise<EpisodeResult | undefined>

const KINDS: Record<string, Kind> = {
  async right({ sandbox, task, model, log, artifact, attempt }) {
    const answer = await model(async () => task.id)
    await sandbox.files.write('/answer', `${answer}\n`)
    log(`attempt ${attempt}`)
    process.stdout.write(`prints ${task.id}\n`)
    await artifact('answer', { path: '/answer' })
    return { data: { answer } }
  },
  async wrong({ sandbox }) {
    await sandbox.exec('echo nothing >/answer')
    return undefined
  },
  async slow(context) {
    await context.sandbox.exec(['sleep', '3'], { signal: context.signal })
    return await KINDS.right?.(context)
  },
  /** Longer than this test's own processes may stand still. */
  async long(context) {
    await context.sandbox.exec(['sleep', '10'], { signal: context.signal })
    return await KINDS.right?.(context)
  },
  async throw() {
    throw new RangeError('no good')
  },
  async model({ model }) {
    await model(async () => {
      throw new Error('the model is away')
    })
    return undefined
  },
  /** Goes on for ever, whatever its signal says. */
  async stubborn() {
    return await new Promise(() => setInterval(() => {}, 1_000))
  },
  /** What it reaches beside its sandbox. */
  async reach({ sandbox, task }) {
    const { id } = sandbox
    const seen: Record<string, unknown> = {}
    for (const path of ['/v1/runs', '/healthz', '/v1/keys']) {
      const { status } = await fetch(`http://127.0.0.1:61080${path}`)
      seen[path] = status
    }
    seen.view = await sandbox.view().catch((error) => error.code)
    Object.assign(sandbox, { id: task.other })
    seen.exec = await sandbox.exec('true').catch((error) => error.code)
    Object.assign(sandbox, { id })
    seen.own = (await sandbox.exec('true')).exitCode
    return { data: seen }
  },
}
