import type { InputBody, Read, Run } from '@sandlot/core'
import type { Clock, Log } from '@sandlot/engine'
import {
  type GroupsPage,
  LIMITS,
  type ResultGroup,
  type ResultRow,
  type ResultsPage,
  SandlotError,
} from '@sandlot/protocol'
import type { FoundRun } from './find-run.ts'
import type { LiveRun } from './live-run.ts'
import type { ResultsQuery, Wait } from './port.ts'
import type { ReadMarks } from './read-marks.ts'
import type { CoordinatorServices } from './services.ts'
import { readGroups, readRows, type Stored, type StoredQuery } from './stored-results.ts'
import { groupStream, type RunAddress, resultStream } from './streams.ts'

/** `find` looks the run up, also after a wait. */
export type FindRun = () => Promise<FoundRun>

/** A page of results; an empty one waits for news as long as it may. */
export async function pageOfResults(
  services: CoordinatorServices,
  find: FindRun,
  query: ResultsQuery,
  wait: Wait,
): Promise<ResultsPage> {
  const { items, ...page } = await readPage(services, find, query, wait, ROWS)
  return { rows: items, ...page }
}

/** The same of groups. */
export async function pageOfGroups(
  services: CoordinatorServices,
  find: FindRun,
  query: ResultsQuery,
  wait: Wait,
): Promise<GroupsPage> {
  const { record } = await find()
  if (record.specification.group === undefined) {
    throw new SandlotError('invalid_request', `the run ${record.name} has no groups`, {
      hint: 'Start it with `group: { size: … }`, or read its results one by one.',
    })
  }
  const { items, ...page } = await readPage(services, find, query, wait, GROUPS)
  return { groups: items, ...page }
}

/** What is read: rows, or groups. */
interface Source<T> {
  readonly name: Read
  readonly limitDefault: number
  readonly limitMax: number
  stream(run: RunAddress): string
  read(log: Log, found: FoundRun, query: StoredQuery): Promise<Stored<T>>
  marks(live: LiveRun): ReadMarks | undefined
  /** Somebody has taken so many. */
  taken(count: number): InputBody
}

const ROWS: Source<ResultRow> = {
  name: 'rows',
  limitDefault: 100,
  limitMax: LIMITS.rowsPerPage,
  stream: resultStream,
  read: (log, { record }, query) => readRows(log, record, query),
  marks: ({ marks }) => marks?.rows,
  taken: (rows) => ({ type: 'results_read', rows }),
}

const GROUPS: Source<ResultGroup> = {
  name: 'groups',
  limitDefault: 10,
  limitMax: LIMITS.groupsPerPage,
  stream: groupStream,
  read: (log, found, query) =>
    readGroups(log, found.record, { ...query, versionMin: versionMin(found) }),
  marks: ({ marks }) => marks?.groups,
  taken: (groups) => ({ type: 'groups_read', groups }),
}

/** The oldest version of the policy that is still taken. */
function versionMin({ record, live }: FoundRun): number {
  const maxLag = record.specification.group?.maxLag ?? null
  const version = live?.actor.run.policyVersion ?? record.finished?.view.policyVersion ?? 0
  return maxLag === null ? 0 : version - maxLag
}

/** The page, and what its reader waited for it. */
async function readPage<T>(
  services: CoordinatorServices,
  find: FindRun,
  query: ResultsQuery,
  wait: Wait,
  source: Source<T>,
): Promise<Stored<T> & { done: boolean }> {
  const { clock } = services
  const { live } = await find()
  const watch = live?.readers[source.name]
  const asked = watch?.asks(query.after ?? '', clock.now())
  try {
    const page = await waitForPage(services, find, query, wait, source)
    asked?.served({ records: page.items.length, cursor: page.cursor })
    return page
  } finally {
    asked?.over(clock.now())
    if (live?.readers[source.name].isDue(clock.now())) tellReading(live, source.name, clock)
  }
}

/** Taken when it is decided on: until then the report has it from the watch. So it stays with one that is over. */
function tellReading({ actor, readers }: LiveRun, read: Read, clock: Clock): void {
  const make = ({ status }: Pick<Run, 'status'>): readonly InputBody[] => {
    const reading = status === 'finished' ? undefined : readers[read].take(clock.now())
    return reading ? [{ type: 'reading', read, ...reading }] : []
  }
  actor.decide(make, () => {})
}

async function waitForPage<T>(
  { engine, clock, signal: stopping }: CoordinatorServices,
  find: FindRun,
  query: ResultsQuery,
  { signal }: Wait,
  source: Source<T>,
): Promise<Stored<T> & { done: boolean }> {
  const untilMs = clock.now() + Math.min(query.waitMs ?? 0, LIMITS.waitMs)
  const limit = Math.min(query.limit ?? source.limitDefault, source.limitMax)
  const after = query.after ? { after: query.after } : {}
  await noteTaken(await find(), query.after, source)
  for (;;) {
    const found = await find()
    const { record, live } = found
    const over = live === undefined || live.actor.run.status === 'finished'
    const seen = live?.news.beats ?? 0
    const page = await source.read(engine.log, found, {
      ...{ limit, ...after },
      ...(signal ? { signal } : {}),
    })
    const { cursor, items } = page
    if (live) source.marks(live)?.served(query.after ?? '', { records: items.length, cursor })
    const leftMs = untilMs - clock.now()
    if (items.length > 0 || over || leftMs <= 0 || stopping.aborted) {
      const head = over ? await engine.log.head(source.stream(record)) : undefined
      return { ...page, done: over && (head === undefined || head === cursor) }
    }
    await live.news.after(seen, { timeoutMs: leftMs, signal })
  }
}

/** Whoever asks for what comes after a row or group has taken it: a run that keeps near its reader may go on. */
async function noteTaken<T>(
  { live }: FoundRun,
  cursor: string | undefined,
  source: Source<T>,
): Promise<void> {
  const marks = live && source.marks(live)
  if (marks === undefined || !cursor) return
  live?.actor.post(source.taken(await marks.through(cursor)))
}
