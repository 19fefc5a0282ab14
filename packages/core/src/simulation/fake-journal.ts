import { apply } from '../run/apply.ts'
import type { UnrecordedGroup, UnrecordedRow } from '../run/effect.ts'
import type { RunEvent } from '../run/event.ts'
import { initialRun } from '../run/initial.ts'
import type { RunPolicy } from '../run/policy.ts'
import type { Run } from '../run/run.ts'
import { loadRun, saveRun } from '../run/saved.ts'
import { BrokenInvariant } from './invariants.ts'

/** What survives the coordinator's death: the log, its checkpoint, and the log of results. */
export interface FakeJournal {
  readonly log: readonly string[]
  readonly results: readonly RecordedRow[]
  readonly groups: readonly RecordedGroup[]
  /** Of rows and groups. */
  readonly lastSeq: number
  /** The log says that the run is over. */
  readonly finished: boolean
  /** What the log gives, kept up as it grows. */
  readonly replayed: Run
  append(events: readonly RunEvent[]): void
  checkpoint(run: Run): void
  /** Once for each episode, whatever is asked. */
  record(seq: number, row: UnrecordedRow): void
  /** Likewise, once for each group. */
  recordGroup(seq: number, group: UnrecordedGroup): void
  /** The run again, from the checkpoint and the log behind it. */
  load(): Run
  /** The run again, from the beginning: what a checkpoint hides would show. */
  replay(): Run
}

export interface RecordedRow {
  readonly seq: number
  readonly row: UnrecordedRow
}

export interface RecordedGroup {
  readonly seq: number
  readonly group: UnrecordedGroup
}

export function createFakeJournal(policy: RunPolicy, startedAtMs: number): FakeJournal {
  const log: string[] = []
  const results: RecordedRow[] = []
  const groups: RecordedGroup[] = []
  const byEpisode = new Map<string, string>()
  const byGroup = new Map<string, string>()
  const replayed = initialRun(policy, startedAtMs)
  let saved: { position: number; state: string } | null = null
  let finished = false

  function applyFrom(run: Run, position: number): Run {
    for (const line of log.slice(position)) apply(run, JSON.parse(line) as RunEvent)
    return run
  }

  return {
    log,
    results,
    groups,
    replayed,
    get lastSeq() {
      return Math.max(results.at(-1)?.seq ?? 0, groups.at(-1)?.seq ?? 0)
    },
    get finished() {
      return finished
    },
    append(events) {
      for (const event of events) {
        const line = JSON.stringify(event)
        log.push(line)
        apply(replayed, JSON.parse(line) as RunEvent)
        if (event.type === 'status_changed' && event.status === 'finished') finished = true
      }
    },
    checkpoint(run) {
      saved = { position: log.length, state: JSON.stringify(saveRun(run)) }
    },
    record(seq, row) {
      const text = JSON.stringify(row)
      const known = byEpisode.get(row.episode)
      if (known !== undefined && known !== text) {
        throw new BrokenInvariant(`an episode has one result: ${known} and ${text}`)
      }
      if (known !== undefined) return
      byEpisode.set(row.episode, text)
      results.push({ seq, row: JSON.parse(text) as UnrecordedRow })
    },
    recordGroup(seq, group) {
      const text = JSON.stringify(group)
      const known = byGroup.get(group.group)
      if (known !== undefined && known !== text) {
        throw new BrokenInvariant(`a group ends once: ${known} and ${text}`)
      }
      if (known !== undefined) return
      if (!group.episodes.every((episode) => byEpisode.has(episode))) {
        throw new BrokenInvariant(`a group is recorded after its rows: ${text}`)
      }
      byGroup.set(group.group, text)
      groups.push({ seq, group: JSON.parse(text) as UnrecordedGroup })
    },
    load() {
      const run = saved ? loadRun(JSON.parse(saved.state)) : initialRun(policy, startedAtMs)
      return applyFrom(run, saved?.position ?? 0)
    },
    replay: () => applyFrom(initialRun(policy, startedAtMs), 0),
  }
}
