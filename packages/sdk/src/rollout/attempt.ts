/** One lease: runs the user's function for it and makes the report. */
import {
  type Artifact,
  type Fault,
  type Lease,
  SandlotError,
  type WorkerReport,
} from '@sandlot/protocol'
import type { ClientContext } from '../connection/context.ts'
import { unlessAborted } from '../connection/signals.ts'
import { getJson, putBytes } from '../image/blob.ts'
import { Sandbox } from '../sandbox/sandbox.ts'
import { Artifacts } from './artifacts.ts'
import type { Episode, Grader } from './episode.ts'
import type { LagMeter } from './lag.ts'
import { ModelClock, type ModelHooks } from './model-clock.ts'
import { CAUSES_MAX, reportOfEpisode, reportOfFailure, reportOfVerdict } from './report.ts'

/** What a worker runs. */
export interface WorkerCode<Task> {
  readonly episode: Episode<Task>
  readonly grader: Grader<Task> | undefined
}

export interface AttemptEnd {
  readonly report: WorkerReport
  /** Of a grader that threw: by no doing of its own. */
  readonly fault?: 'platform'
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
  const found = await unlessAborted(
    run(context, lease, code, { signal, clock, sandbox, artifacts }),
    signal,
  ).then(
    (report): Found => ({ report }),
    (thrown): Found =>
      signal.aborted ? { report: { kind: 'aborted' } } : foundByThrown(lease, thrown, clock),
  )
  const lagMs = lag.total() - lagBefore
  const modelMs = clock.totalMs()
  const agentMs = Math.max(0, performance.now() - startedMs - modelMs - lagMs)
  const left = signal.aborted ? [] : await artifacts.collect()
  return { ...found, modelMs, lagMs, agentMs, ...(left.length > 0 ? { artifacts: left } : {}) }
}

type Found = Pick<AttemptEnd, 'report' | 'fault'>

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
 * The platform's own failure is nobody's error: the lease is given back, and the agent's part starts again elsewhere. A grader's is told as
 * such, so that it is never a zero. What a lost sandbox comes to, its recorded fate says.
 */
function foundByThrown({ phase }: Lease, thrown: unknown, { failure }: ModelClock): Found {
  if (failure) return { report: reportOfFailure(failure) }
  if (phase === 'grade') {
    return { report: reportOfFailure(thrown), ...(isByPlatform(thrown) ? PLATFORM : {}) }
  }
  return { report: isGivenBack(thrown) ? { kind: 'aborted' } : reportOfFailure(thrown) }
}

const PLATFORM = { fault: 'platform' } as const

function isGivenBack(thrown: unknown): boolean {
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

/** Also where the grader has wrapped it in an error of its own. */
function isByPlatform(thrown: unknown): boolean {
  try {
    let error = thrown
    for (let depth = 0; error instanceof Error && depth < CAUSES_MAX; depth += 1) {
      if (error instanceof SandlotError) return BY_PLATFORM.has(error.fault)
      error = error.cause
    }
  } catch {}
  return false
}

const BY_PLATFORM: ReadonlySet<Fault> = new Set(['platform', 'capacity'] as const)

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
