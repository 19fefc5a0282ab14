import {
  type AttemptAddress,
  apply,
  initialRun,
  loadRun,
  type Read,
  type Run,
  recover,
  type Step,
} from '@sandlot/core'
import type { Clock, Engine, Position } from '@sandlot/engine'
import type { ModelCall, NodePort, SandboxEnded } from '../node/port.ts'
import type { Deadlines } from './deadlines.ts'
import { EventJournal } from './event-journal.ts'
import { createBatchDecoder } from './event-record.ts'
import type { FunctionHost } from './functions/function-host.ts'
import { type FunctionWorkers, openFunctionWorkers } from './functions/function-workers.ts'
import { openGrading } from './grading.ts'
import type { LeavesUnderWay } from './leaves-under-way.ts'
import type { SandboxKeeper } from './leaving.ts'
import { COORDINATOR_LIMITS } from './limits.ts'
import { type OwnStarts, openOwnStarts } from './own-starts.ts'
import { performer } from './perform-effects.ts'
import { openProgramWorker, type ProgramWorker } from './programs/program-worker.ts'
import { createPulse, type Pulse } from './pulse.ts'
import { openReadMarks, type ReadMarks } from './read-marks.ts'
import { openReaderWatch, type ReaderWatch } from './reader-watch.ts'
import { openResultLog, type ResultLog } from './result-log.ts'
import { RunActor } from './run-actor.ts'
import type { RunRecord } from './run-record.ts'
import { fateOf, isReleased } from './sandbox-fate.ts'
import { openSandboxes } from './sandboxes.ts'
import { policyOf } from './specification.ts'
import { eventStream, groupStream, resultStream } from './streams.ts'
import { openTaskStore, pinBlob, type TaskCache, type TaskStore } from './task-store.ts'
import { WorkerStreams } from './worker-streams.ts'

/** A run that is not over, with all that works for it. */
export interface LiveRun {
  readonly record: RunRecord
  readonly actor: RunActor
  readonly journal: EventJournal
  readonly tasks: TaskStore
  /** What its tasks start from, beside what it does itself. */
  readonly starts: OwnStarts
  readonly workers: WorkerStreams
  /** Beats with everything that became durable of its results, and when the run is over. */
  readonly news: Pulse
  readonly stage: Stage
  readonly currency: string | null
  /** Present where it matters how far its reader is. */
  readonly marks: { readonly rows: ReadMarks; readonly groups: ReadMarks } | undefined
  /** What its readers do, for its report. */
  readonly readers: Readonly<Record<Read, ReaderWatch>>
  /** The sandbox of an attempt ended, and it was not this coordinator that asked for it. */
  sandboxEnded(of: AttemptAddress, ended: SandboxEnded): void
  /** Why nobody runs its episodes, where that is known. */
  trouble(): string | undefined
  /** Of the model that its programs find inside. */
  modelCalled(of: AttemptAddress, call: ModelCall): void
  /** The node knows nothing of the attempt's sandbox. */
  sandboxVanished(of: AttemptAddress, sandbox: string): void
  /** Stops deciding and waits for what is being written. Workers learn whether the run is over or only let go of. Idempotent. */
  close(reason: 'over' | 'gone'): Promise<void>
}

/** Where the daemon is in its life, for what is said of its runs. */
export interface Stage {
  /** It admits nothing more and will stop. */
  draining: boolean
}

export interface RunServices {
  readonly onStored?: (project: string, blob: string) => Promise<void>
  readonly engine: Engine
  readonly node: NodePort
  readonly clock: Clock
  readonly deadlines: Deadlines
  readonly taskCache: TaskCache
  readonly keeper: SandboxKeeper
  readonly leaves: LeavesUnderWay
  /** What the daemon's metrics count. */
  readonly counters: { done: number }
  readonly stage: Stage
  readonly currency?: string | null
  readonly functions?: FunctionHost
  /** Aborts when the coordinator stops. */
  readonly signal: AbortSignal
  /** For the daemon's log: something of ours failed, and is tried again. */
  warn(message: string, error: unknown): void
  /** Its last event is durable: what is left is to write that down and to clean up. */
  finished(live: LiveRun): void
  /** It can't go on in memory: it has to be read back from its log. */
  failed(live: LiveRun, error: unknown): void
}

/** Reads a run back from its log, and goes on with it. A run that has just been created has an empty one. */
export async function openLiveRun(services: RunServices, record: RunRecord): Promise<LiveRun> {
  const { engine, clock } = services
  const restored = await restore(engine, record)
  const tasks = await openTaskStore(engine, record, services.taskCache)
  const starts = await openOwnStarts(engine.log, record, record.specification.resources)
  const { run, head } = restored
  const goesOn = head !== 'start' && run.status !== 'finished'
  const first = goesOn ? recover(run, clock.now(), NOTHING_CONFIRMED) : undefined
  return startRun(services, record, { ...restored, tasks, starts }, first)
}

/**
 * Rows that were appended and not confirmed are simply appended again: the log of results takes each episode once, so it is asked
 * by the append itself which of them it has.
 */
const NOTHING_CONFIRMED = 0

interface Restored {
  readonly run: Run
  readonly head: Position | 'start'
  readonly sinceCheckpointBytes: number
}

async function restore(engine: Engine, record: RunRecord): Promise<Restored> {
  const stream = eventStream(record)
  const checkpoint = await engine.log.latestCheckpoint(stream)
  const run = checkpoint
    ? loadRun(JSON.parse(Buffer.from(checkpoint.state).toString()))
    : initialRun(policyOf(record), record.createdAtMs)
  const decode = createBatchDecoder()
  let head: Position | 'start' = checkpoint?.position ?? 'start'
  let sinceCheckpointBytes = 0
  for (;;) {
    const page = await engine.log.read(stream, head === 'start' ? {} : { after: head })
    for (const { position, bytes } of page) {
      for (const event of decode(bytes)) apply(run, event)
      sinceCheckpointBytes += bytes.length
      head = position
    }
    if (page.length === 0) break
  }
  return { run, head, sinceCheckpointBytes }
}

function startRun(
  services: RunServices,
  record: RunRecord,
  restored: Restored & Pick<LiveRun, 'tasks' | 'starts'>,
  first: Step | undefined,
): LiveRun {
  const { engine, node, clock, deadlines, keeper, leaves, signal, warn } = services
  const { tasks, starts } = restored
  const failed = (error: unknown) => services.failed(live, error)
  const journal = new EventJournal({
    log: engine.log,
    clock,
    stream: eventStream(record),
    ...restored,
    failed,
  })
  const news = createPulse(clock, COORDINATOR_LIMITS.resultReaders)
  const results: ResultLog = openResultLog({
    log: engine.log,
    clock,
    rows: resultStream(record),
    groups: groupStream(record),
    recorded(through, rows) {
      services.counters.done += rows
      actor.post({ type: 'results_recorded', through })
      actor.resume()
      news.beat()
    },
    failed,
  })
  const actor = new RunActor({
    run: restored.run,
    journal,
    clock,
    deadlines,
    isJammed: () =>
      journal.waitingBytes > COORDINATOR_LIMITS.eventBytesInFlight ||
      results.waiting > COORDINATOR_LIMITS.resultsInFlight,
    perform: (effects) => perform(effects),
    failed,
  })
  const keepBlob = (blob: string) => pinBlob(engine, record, blob)
  const workers = new WorkerStreams({ actor, keepBlob })
  const keepOwn = (blob: string) =>
    keepBlob(blob).then(() => services.onStored?.(record.project, blob))
  const owned = { keeper, leaves, keepBlob: keepOwn }
  const work = { record, engine, node, clock, ...owned, signal, actor, tasks, warn }
  let programs: ProgramWorker | undefined
  let functions: FunctionWorkers | undefined
  const perform = performer({
    ...{ actor, workers, results, tasks, failed },
    sandboxes: openSandboxes(work),
    grading: openGrading(work),
    over() {
      news.beat()
      services.finished(live)
    },
  })
  const live: LiveRun = {
    ...{ record, actor, journal, tasks, starts, workers, news, stage: services.stage },
    currency: services.currency ?? null,
    readers: { rows: openReaderWatch(), groups: openReaderWatch() },
    marks:
      record.specification.ahead == null
        ? undefined
        : {
            rows: openReadMarks(engine.log, resultStream(record)),
            groups: openReadMarks(engine.log, groupStream(record)),
          },
    sandboxEnded({ episode, attempt }, ended) {
      if (isReleased(ended)) return
      const { sandbox } = ended
      actor.post({ type: 'sandbox_lost', episode, attempt, sandbox, fate: fateOf(ended, record) })
    },
    sandboxVanished({ episode, attempt }, sandbox) {
      const fate = { cause: 'lost', evidence: 'the node knows nothing of it' } as const
      actor.post({ type: 'sandbox_lost', episode, attempt, sandbox, fate })
    },
    trouble: () => functions?.trouble,
    modelCalled: (of, call) => programs?.modelCalled(of, call),
    async close(reason) {
      programs?.close()
      const ended = functions?.close()
      actor.stop()
      workers.end(reason)
      news.beat()
      await Promise.all([journal.close(), results.close(), ended])
    },
  }
  actor.start(first)
  if (record.specification.program && actor.run.status !== 'finished') {
    programs = openProgramWorker(work, workers)
  }
  if (record.specification.function && services.functions && actor.run.status !== 'finished') {
    functions = openFunctionWorkers(work, workers, services.functions)
  }
  return live
}
