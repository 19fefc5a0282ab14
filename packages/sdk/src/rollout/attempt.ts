/** One lease: runs the user's function for it and makes the report. */
import type { Lease, WorkerReport } from '@sandlot/protocol'
import { getBytes, putBytes } from '../image/blob.ts'
import { Sandbox, type SandboxContext } from '../sandbox/sandbox.ts'
import { type Episode, type Grader, ModelError } from './episode.ts'
import type { LagMeter } from './lag.ts'
import { reportOfEpisode, reportOfFailure, reportOfVerdict } from './report.ts'

export interface AttemptHooks {
  /** The model's time starts and ends: the platform stops the agent's clock. */
  readonly modelStarted: () => void
  readonly modelEnded: () => void
}

export interface AttemptEnd {
  readonly report: WorkerReport
  readonly agentMs: number
  readonly modelMs: number
  readonly lagMs: number
}

/** Runs the function of the lease's phase. Never throws: whatever happens is a report. */
export async function runAttempt<Task>(
  context: SandboxContext,
  lease: Lease,
  code: { episode: Episode<Task>; grader: Grader<Task> | undefined },
  options: { signal: AbortSignal; lag: LagMeter; hooks: AttemptHooks },
): Promise<AttemptEnd> {
  const { signal, lag } = options
  const clock = new ModelClock(options.hooks)
  const startedMs = performance.now()
  const lagBefore = lag.total()
  let report: WorkerReport
  try {
    const sandbox = new Sandbox(context, lease.sandbox, { world: lease.world, signal })
    const task = (await readJson(context, lease.taskJson, lease.taskBlob)) as Task
    if (lease.phase === 'grade') {
      if (!code.grader) throw new Error('this process has no grader function for the run')
      const data = await readJson(context, lease.dataJson, lease.dataBlob)
      const episode = { files: new Sandbox(context, lease.sandbox, { signal }).files }
      report = reportOfVerdict(
        await code.grader({ sandbox, episode, task, key: lease.key, data, signal }),
      )
    } else {
      const model = clock.wrap(lease.modelTimeoutMs, signal)
      const { key, index, attempt, seed, policyVersion } = lease
      const returned = await code.episode({
        sandbox,
        task,
        key,
        index,
        attempt,
        seed,
        policyVersion,
        signal,
        model,
      })
      report = await reportOfEpisode(returned, async (bytes) => await putBytes(context, bytes))
    }
  } catch (thrown) {
    report = signal.aborted ? { kind: 'aborted' } : reportOfFailure(clock.failure ?? thrown)
  }
  const lagMs = lag.total() - lagBefore
  const modelMs = clock.totalMs()
  return {
    report,
    modelMs,
    lagMs,
    agentMs: Math.max(0, performance.now() - startedMs - modelMs - lagMs),
  }
}

async function readJson(
  context: SandboxContext,
  json: string | null,
  blob: string | null,
): Promise<unknown> {
  if (json !== null) return JSON.parse(json)
  return blob === null
    ? undefined
    : JSON.parse(new TextDecoder().decode(await getBytes(context, blob)))
}

/** Time spent in calls of the model; calls that overlap count once. */
class ModelClock {
  /** The last call that failed, while no later one succeeded: an episode that throws because of it failed for that reason. */
  failure: ModelError | undefined
  readonly #hooks: AttemptHooks
  #running = 0
  #startedMs = 0
  #totalMs = 0

  constructor(hooks: AttemptHooks) {
    this.#hooks = hooks
  }

  totalMs(): number {
    return this.#totalMs + (this.#running > 0 ? performance.now() - this.#startedMs : 0)
  }

  wrap(timeoutMs: number, signal: AbortSignal) {
    return async <T>(call: (options: { signal: AbortSignal }) => Promise<T>): Promise<T> => {
      const expiry = AbortSignal.timeout(timeoutMs)
      const both = AbortSignal.any([expiry, signal])
      this.#enter()
      try {
        const answer = await Promise.race([call({ signal: both }), rejectOn(both)])
        this.failure = undefined
        return answer
      } catch (cause) {
        if (signal.aborted) throw cause
        const message = expiry.aborted
          ? `the model did not answer in ${timeoutMs} ms`
          : 'the call of the model failed'
        const error = cause instanceof ModelError ? cause : new ModelError(message, { cause })
        this.failure = error
        throw error
      } finally {
        this.#leave()
      }
    }
  }

  #enter(): void {
    if (this.#running++ === 0) {
      this.#startedMs = performance.now()
      this.#hooks.modelStarted()
    }
  }

  #leave(): void {
    if (--this.#running === 0) {
      this.#totalMs += performance.now() - this.#startedMs
      this.#hooks.modelEnded()
    }
  }
}

function rejectOn(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}
