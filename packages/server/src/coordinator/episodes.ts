/** Looks at the episodes of a run: those that go on, and those that are recorded. */
import {
  type Episode,
  episodeId,
  episodeIndex,
  itemOf,
  type Run,
  standingOf,
  type UnrecordedRow,
} from '@sandlot/core'
import type { Log } from '@sandlot/engine'
import {
  type EpisodeItem,
  type EpisodeState,
  type EpisodeView,
  LIMITS,
  type Outcome,
  type ResultRow,
  SandlotError,
} from '@sandlot/protocol'
import type { FoundRun } from './find-run.ts'
import { COORDINATOR_LIMITS } from './limits.ts'
import { findRow, readRows } from './stored-results.ts'

export interface EpisodesQuery {
  readonly limit?: number
  readonly after?: string
  readonly state?: EpisodeState
  readonly outcome?: Outcome
}

export interface EpisodePage {
  readonly items: EpisodeItem[]
  readonly next: string | null
}

const ITEMS_DEFAULT = 100
const LIVE = 'live:'
const DONE = 'done:'

/**
 * Those that are not done in the order of their submission, then the others in that of their results. Each page is as things stand
 * when it is read: an episode that ends meanwhile may come twice, and one that has just ended is missing until its row is recorded.
 */
export async function listEpisodes(
  log: Log,
  found: FoundRun,
  query: EpisodesQuery,
): Promise<EpisodePage> {
  const { after = LIVE, state, outcome } = query
  const limit = Math.min(query.limit ?? ITEMS_DEFAULT, LIMITS.itemsPerPage)
  if (!after.startsWith(LIVE) && !after.startsWith(DONE)) throw noCursor()
  const isLive = after.startsWith(LIVE) && state !== 'done' && outcome === undefined
  const items = isLive ? liveItems(found, after.slice(LIVE.length), state, limit) : []
  const last = items.at(-1)
  if (last && items.length === limit) return { items, next: `${LIVE}${last.index}` }
  if (state !== undefined && state !== 'done') return { items, next: null }
  const cursor = after.startsWith(DONE) ? after.slice(DONE.length) : ''
  return await doneItems(log, found, { items, cursor, limit, outcome })
}

/** By its key or its id. Throws `not_found`. */
export async function getEpisode(log: Log, found: FoundRun, name: string): Promise<EpisodeView> {
  const { record, live } = found
  const index = episodeIndex(record.id, name)
  const run = live?.actor.run
  const episode = run && findLive(run, name, index)
  if (run && episode) {
    const standing = standingOf(run, episode)
    if (record.specification.program === undefined) return standing
    // The daemon itself, of which there is nothing to hear.
    const progress = standing.progress.map((each) => ({ ...each, worker: null }))
    return { ...standing, progress }
  }
  const ended = run && findUnrecorded(run, name)
  if (ended) return viewOfRow(ended, null)
  const row = await findRow(log, record, {
    name,
    episode: index === undefined ? undefined : episodeId(record.id, index),
  })
  if (row) return viewOfRow(row, row)
  throw new SandlotError('not_found', `the run ${record.name} has no episode ${shown(name)}`, {
    hint: `\`sandlot runs episodes ${record.name}\` lists them.`,
  })
}

function liveItems(
  { live }: FoundRun,
  after: string,
  state: EpisodeState | undefined,
  limit: number,
): EpisodeItem[] {
  const items: EpisodeItem[] = []
  if (!live) return items
  const from = after === '' ? -1 : Number(after)
  if (!Number.isInteger(from)) throw noCursor()
  const { run } = live.actor
  for (const episode of liveAfter(run, from)) {
    if (items.length === limit) break
    const item = itemOf(run, episode)
    if (state === undefined || item.state === state) items.push(item)
  }
  return items
}

/** In the order of their positions, by the shorter way: over all that live, or over all positions that are left. */
function* liveAfter(run: Run, from: number): Generator<Episode> {
  if (run.live.size <= run.nextIndex - from) {
    for (const episode of run.live.values()) if (episode.index > from) yield episode
    return
  }
  for (let index = from + 1; index < run.nextIndex; index++) {
    const episode = run.live.get(index)
    if (episode) yield episode
  }
}

/** A page ends early where it would take long to fill: the next one goes on. */
async function doneItems(
  log: Log,
  { record }: FoundRun,
  page: {
    readonly items: EpisodeItem[]
    cursor: string
    readonly limit: number
    readonly outcome: Outcome | undefined
  },
): Promise<EpisodePage> {
  const { items, limit, outcome } = page
  let { cursor } = page
  for (let read = 0; read < COORDINATOR_LIMITS.episodePagesRead; read++) {
    const wanted = Math.max(1, limit - items.length)
    const rows = await readRows(log, record, {
      limit: outcome === undefined ? wanted : LIMITS.rowsPerPage,
      ...(cursor === '' ? {} : { after: cursor }),
    })
    if (rows.items.length === 0) return { items, next: null }
    for (const row of rows.items) {
      cursor = row.cursor
      if (outcome === undefined || row.outcome === outcome) items.push(itemOfRow(row))
      if (items.length === limit) return { items, next: `${DONE}${cursor}` }
    }
  }
  return { items, next: `${DONE}${cursor}` }
}

function findLive(run: Run, name: string, index: number | undefined): Episode | undefined {
  const byId = index === undefined ? undefined : run.live.get(index)
  if (byId) return byId
  for (const episode of run.live.values()) if (episode.key === name) return episode
  return undefined
}

/** What has ended is here until it is in the log of results for certain. */
function findUnrecorded(run: Run, name: string): UnrecordedRow | undefined {
  for (const item of run.unrecorded.values()) {
    if ('outcome' in item && (item.key === name || item.episode === name)) return item
  }
  return undefined
}

function itemOfRow(row: UnrecordedRow): EpisodeItem {
  const { episode, key, group, member, index, attempt, sandbox, outcome, reward, error } = row
  return {
    ...{ episode, key, group, member, index, attempt, sandbox, outcome, reward, error },
    state: 'done',
    phase: 'ended',
    sinceMs: Date.parse(row.endedAt),
  }
}

/** `row`: null while it is not recorded. */
function viewOfRow(ended: UnrecordedRow, row: ResultRow | null): EpisodeView {
  const { seed, attempts } = ended
  return {
    ...itemOfRow(ended),
    ...{ seed, attempts, row, waits: null, ahead: null, progress: [] },
  }
}

function noCursor(): SandlotError {
  return new SandlotError('invalid_request', '`after` is not the cursor of a page of episodes', {
    hint: 'Pass `next` of the page before.',
  })
}

function shown(name: string): string {
  return JSON.stringify(name.slice(0, 80))
}
