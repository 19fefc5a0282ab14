/**
 * Runs in a container of the daemon, as what a bundled episode begins with: the same code as that of a process that works on a run, with
 * one connection for each attempt, which reaches the attempt's sandbox alone.
 */
import type { AttemptNews, FunctionAttempt, FunctionAttemptEnd } from '@sandlot/protocol'
import { Address } from '../connection/address.ts'
import { Connection } from '../connection/connection.ts'
import type { ClientContext } from '../connection/context.ts'
import { Notices } from '../connection/notices.ts'
import { runAttempt, type WorkerCode } from '../rollout/attempt.ts'
import { type LagMeter, startLagMeter } from '../rollout/lag.ts'
import { ContainerHttp } from './container-http.ts'

/** What the container's runner gives beside the input. */
interface RunnerContext {
  readonly signal: AbortSignal
  readonly tell: (news: AttemptNews) => void
}

const ALIVE_MS = 10_000

/** The handler of a container: takes leases of a run, of both phases where there is a grader. */
export function attemptHandler<Task>(
  code: WorkerCode<Task>,
): (attempt: FunctionAttempt, context: RunnerContext) => Promise<FunctionAttemptEnd> {
  for (const [name, each] of Object.entries(code)) {
    if (each === undefined || typeof each === 'function') continue
    throw new TypeError(`the ${name} is of type ${typeof each}, not a function`)
  }
  return async ({ lease, url, token }, { signal, tell }) => {
    using lag = meteredLag(tell)
    const { context, close } = connect(url, token)
    const returned = followed(code)
    try {
      const hooks = {
        modelStarted: () => tell({ kind: 'model_started' }),
        modelEnded: () => tell({ kind: 'model_ended' }),
      }
      const end = await runAttempt(context, lease, returned.code, { signal, lag, hooks })
      // One that goes on when its time is over keeps its place, so that its container is known to be of no more use.
      await returned.settled()
      return end
    } finally {
      close()
    }
  }
}

/** Code of which it is known when it has returned, whoever waits for it. */
function followed<Task>({ episode, grader }: WorkerCode<Task>) {
  let settled: Promise<unknown> = Promise.resolve()
  function follow<T>(work: () => Promise<T>): Promise<T> {
    const working = (async () => await work())()
    settled = working.catch(() => {})
    return working
  }
  const code: WorkerCode<Task> = {
    episode: (context) => follow(() => episode(context)),
    grader: grader && ((context) => follow(() => grader(context))),
  }
  return { code, settled: () => settled }
}

function connect(url: string, apiKey: string): { context: ClientContext; close: () => void } {
  // What a person is told of a daemon that is away is none of an episode's.
  const notices = new Notices(() => {})
  const address = new Address(async () => ({ url, apiKey }), notices)
  const connection = new Connection(address)
  const http = new ContainerHttp(address)
  return {
    context: { connection, http, notices },
    close() {
      http.close()
      connection.close()
    },
  }
}

/** Of the attempts under way: what is told by one that has ended reaches nobody. */
const telling = new Set<RunnerContext['tell']>()
let meter: LagMeter | undefined
let alive: NodeJS.Timeout | undefined
let toldMs = 0

/** The lag of this process, measured and told while any attempt is under way. */
function meteredLag(tell: RunnerContext['tell']): LagMeter & Disposable {
  telling.add(tell)
  meter ??= startLagMeter()
  const lag = meter
  alive ??= setInterval(() => tellAlive(lag), ALIVE_MS)
  return {
    ...lag,
    [Symbol.dispose]() {
      telling.delete(tell)
      if (telling.size > 0) return
      lag.stop()
      clearInterval(alive)
      meter = undefined
      alive = undefined
      toldMs = 0
    },
  }
}

function tellAlive(lag: LagMeter): void {
  const [tell] = telling
  const totalMs = lag.total()
  tell?.({ kind: 'alive', lagMs: Math.max(0, totalMs - toldMs) })
  toldMs = totalMs
}
