/** One lease: runs the user's function for it and makes the report. */
import { type Artifact, type Lease, SandlotError, type WorkerReport } from '@sandlot/protocol'
import type { ClientContext } from '../connection/context.ts'
import { unlessAborted } from '../connection/signals.ts'
import { getJson, putBytes } from '../image/blob.ts'
import { Sandbox } from '../sandbox/sandbox.ts'
import { Artifacts } from './artifacts.ts'
import type { Episode, Grader } from './episode.ts'
import type { LagMeter } from './lag.ts'
import { ModelClock, type ModelHooks } from './model-clock.ts'
import { reportOfEpisode, reportOfFailure, reportOfVerdict } from './report.ts'

/** What a worker runs. */
export interface WorkerCode<Task> {
  readonly episode: Episode<Task>
  readonly grader: Grader<Task> | undefined
}

export interface AttemptEnd {
  readonly report: WorkerReport
  readonly artifacts?: Artifact[]
  readonly agentMs: number
  readonly modelMs: number
  readonly lagMs: number
}

/**
 * Runs the function of the lease's phase. Never throws: whatever happens is a report. When the signal is aborted it doesn't wait for
 * the function, which may never return.
 */
export async function runAttempt<Task>(
  context: ClientContext,
  lease: Lease,
  code: WorkerCode<Task>,
  options: { readonly signal: AbortSignal; readonly lag: LagMeter; readonly hooks: ModelHooks },
): Promise<AttemptEnd> {
  const { signal, lag } = options
  const clock = new ModelClock(options.hooks)
  const startedMs = performance.now()
  const lagBefore = lag.total()
  const sandbox = new Sandbox(context, lease.sandbox, { world: lease.world, signal })
  const artifacts = new Artifacts(context, { files: sandbox.files, signal })
  const run = lease.phase === 'grade' ? runGrader : runEpisode
  const report = await unlessAborted(
    run(context, lease, code, { signal, clock, sandbox, artifacts }),
    signal,
  ).catch(
    (thrown): WorkerReport =>
      signal.aborted ? { kind: 'aborted' } : reportOfThrown(lease, thrown, clock),
  )
  const lagMs = lag.total() - lagBefore
  const modelMs = clock.totalMs()
  const agentMs = Math.max(0, performance.now() - startedMs - modelMs - lagMs)
  const left = signal.aborted ? [] : await artifacts.collect()
  return { report, modelMs, lagMs, agentMs, ...(left.length > 0 ? { artifacts: left } : {}) }
}

interface Attempt {
  readonly signal: AbortSignal
  readonly clock: ModelClock
  readonly sandbox: Sandbox
  readonly artifacts: Artifacts
}

async function runEpisode<Task>(
  context: ClientContext,
  lease: Lease,
  { episode }: WorkerCode<Task>,
  { signal, clock, sandbox, artifacts }: Attempt,
): Promise<WorkerReport> {
  const { key, group, member, index, attempt, seed, policyVersion } = lease
  const returned = await episode({
    sandbox,
    task: (await readJson(context, lease.taskJson, lease.taskBlob, signal)) as Task,
    ...{ key, group, member, index, attempt, seed, policyVersion, signal },
    model: clock.wrap(lease.modelTimeoutMs, signal),
    log: (message) => artifacts.log(message),
    artifact: (name, content) => artifacts.put(name, content),
  })
  // Whatever the function made of it, the model did not answer.
  if (clock.failure) throw clock.failure
  return await reportOfEpisode(returned, (bytes) => putBytes(context, bytes, { signal }))
}

async function runGrader<Task>(
  context: ClientContext,
  lease: Lease,
  { grader }: WorkerCode<Task>,
  { signal, sandbox }: Attempt,
): Promise<WorkerReport> {
  if (!grader) throw new Error('this process has no grader function for the run')
  const verdict = await grader({
    sandbox,
    episode: { files: new Sandbox(context, lease.sandbox, { signal }).files },
    task: (await readJson(context, lease.taskJson, lease.taskBlob, signal)) as Task,
    key: lease.key,
    data: await readJson(context, lease.dataJson, lease.dataBlob, signal),
    signal,
  })
  return reportOfVerdict(verdict)
}

/**
 * The platform's own failure is nobody's error: the lease is given back, and the agent's part starts again elsewhere. What a lost
 * sandbox comes to, its recorded fate says.
 */
function reportOfThrown({ phase }: Lease, thrown: unknown, { failure }: ModelClock): WorkerReport {
  if (failure) return reportOfFailure(failure)
  return isPlatforms(thrown) && phase === 'agent' ? { kind: 'aborted' } : reportOfFailure(thrown)
}

function isPlatforms(thrown: unknown): boolean {
  try {
    return (
      thrown instanceof SandlotError &&
      thrown.fault === 'platform' &&
      thrown.code !== 'sandbox_lost'
    )
  } catch {
    // It throws when it is looked at, as nothing of ours does.
    return false
  }
}

async function readJson(
  context: ClientContext,
  json: string | null,
  blob: string | null,
  signal: AbortSignal,
): Promise<unknown> {
  if (json !== null) return JSON.parse(json)
  if (blob === null) return undefined
  return await getJson(context, blob, { signal })
}
