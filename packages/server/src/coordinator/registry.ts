import type { Revision } from '@sandlot/engine'
import { SandlotError } from '@sandlot/protocol'
import { attemptOfSandbox } from './ids.ts'
import { COORDINATOR_LIMITS } from './limits.ts'
import { type LiveRun, openLiveRun, type RunServices } from './live-run.ts'
import { type RunRecord, type StoredRecord, saveRecord } from './run-record.ts'
import { dropStreams, workStreams } from './run-streams.ts'
import { reportOf, viewOf } from './views.ts'

/** The runs that are not over: opened, written down when they are over, read back when they broke. */
export interface Registry {
  find(project: string, name: string): LiveRun | undefined
  all(): Iterable<LiveRun>
  /** The run that this sandbox was made for; `'unknown'` where it may be one that is being read back. */
  findBySandbox(sandbox: string): LiveRun | 'unknown' | undefined
  open(stored: StoredRecord): Promise<LiveRun>
  /** Resolves when a run of this name that is over is also written down. */
  settled(project: string, name: string): Promise<void>
  readonly size: number
  /** Refuses where there are as many unfinished runs as there may be. */
  assertRoom(): void
  close(): Promise<void>
}

type Services = Omit<RunServices, 'finished' | 'failed'>

interface Entry {
  readonly record: RunRecord
  revision: Revision
  /** Absent while it is being read back. */
  live?: LiveRun | undefined
  ending?: Promise<void> | undefined
  retryMs: number
}

export function openRegistry(services: Services): Registry {
  const { engine, clock, signal, warn } = services
  const entries = new Map<string, Entry>()
  /** Runs that are being written down, also when others of their names are there already. */
  const endings = new Set<Promise<void>>()

  async function open(entry: Entry): Promise<LiveRun> {
    const live = await openLiveRun(
      {
        ...services,
        finished: (over) => finish(entry, over),
        failed: (broken, error) => readBack(entry, broken, error),
      },
      entry.record,
    )
    entry.live = live
    // The end was recorded, and not written down before the coordinator died.
    if (live.actor.run.status === 'finished') finish(entry, live)
    return live
  }

  /** Its last event is durable. The record says so from now on, and its logs of events and tasks are not needed any more. */
  function finish(entry: Entry, live: LiveRun) {
    if (entry.ending !== undefined) return
    const ending = writeDown(entry, live)
      .catch((error: unknown) => {
        entry.ending = undefined
        if (signal.aborted) return
        warn(`could not write down the end of the run ${entry.record.name}`, error)
        later(entry, () => finish(entry, live))
      })
      .finally(() => endings.delete(ending))
    entry.ending = ending
    endings.add(ending)
  }

  async function writeDown(entry: Entry, live: LiveRun) {
    const finished = { view: viewOf(live, clock.now()), report: reportOf(live, clock.now()) }
    await saveRecord(engine.kv, { ...entry.record, finished }, entry.revision)
    entries.delete(nameOf(entry.record))
    await live.close('over')
    await dropStreams(engine, workStreams(entry.record))
  }

  function readBack(entry: Entry, live: LiveRun, error: unknown) {
    if (signal.aborted || entry.live !== live) return
    warn(`the run ${entry.record.name} broke off and is read back from its log`, error)
    entry.live = undefined
    void live
      .close('gone')
      .then(() => open(entry))
      .catch((again: unknown) => {
        warn(`could not read back the run ${entry.record.name}`, again)
        later(entry, () => readBack(entry, live, again))
      })
  }

  function later(entry: Entry, work: () => void) {
    const delayMs = entry.retryMs
    entry.retryMs = Math.min(delayMs * 2, COORDINATOR_LIMITS.reopenMsMax)
    clock.after(delayMs, () => {
      if (!signal.aborted) work()
    })
  }

  return {
    find: (project, name) => entries.get(nameOf({ project, name }))?.live,
    *all() {
      for (const { live } of entries.values()) if (live) yield live
    },
    findBySandbox(sandbox) {
      for (const { record, live } of entries.values()) {
        if (attemptOfSandbox(record.id, sandbox)) return live ?? 'unknown'
      }
      return undefined
    },
    async open({ record, revision }) {
      const entry: Entry = { record, revision, retryMs: COORDINATOR_LIMITS.reopenMs }
      entries.set(nameOf(record), entry)
      try {
        return await open(entry)
      } catch (error) {
        entries.delete(nameOf(record))
        throw error
      }
    },
    async settled(project, name) {
      await entries.get(nameOf({ project, name }))?.ending
    },
    assertRoom() {
      if (entries.size < COORDINATOR_LIMITS.runsLive) return
      throw new SandlotError('rate_limited', `there are ${entries.size} unfinished runs already`, {
        hint: 'Wait until one is over, or cancel one.',
      })
    },
    get size() {
      return entries.size
    },
    async close() {
      await Promise.all([...entries.values()].map(({ live }) => live?.close('gone')))
      await Promise.all(endings)
    },
  }
}

function nameOf({ project, name }: { readonly project: string; readonly name: string }): string {
  return `${project}/${name}`
}
