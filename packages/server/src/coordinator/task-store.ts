import { createHash } from 'node:crypto'
import type { Digest, Engine, Log, Position } from '@sandlot/engine'
import { isEngineError } from '@sandlot/engine'
import { SandlotError, type TaskPut } from '@sandlot/protocol'
import { COORDINATOR_LIMITS } from './limits.ts'
import { canonical } from './specification.ts'
import { pinPrefix, type RunAddress, taskStream } from './streams.ts'

/**
 * The contents of a run's tasks. Small ones and blobs stay with their episode; of the others the episode has but the place,
 * and they are read when they are leased.
 */
export interface TaskStore {
  /** Makes the contents durable and gives what the episode carries of each. `blob_unknown`: nothing was added. */
  add(tasks: readonly StoredTask[]): Promise<CarriedTask[]>
  load(carried: TaskContent): Promise<TaskContent> | TaskContent
  /** The text of what a task has of its own. */
  loadOwn(own: string | null): Promise<string | null> | string | null
}

export interface StoredTask extends Pick<TaskPut, 'json' | 'blob'> {
  /** JSON text of what it has of its own. */
  readonly own?: string | undefined
  /** Blobs that are kept with it. */
  readonly files: readonly string[]
}

/** As the worker gets it: JSON text or a blob. */
export interface TaskContent {
  readonly taskJson: string | null
  readonly taskBlob: string | null
}

/** The same, or in `taskBlob` and `own` the place of the text: `at:<index>:<position before its record>`. */
export interface CarriedTask extends TaskContent {
  readonly own: string | null
}

const PLACE = 'at:'

/** Says whether two tasks are the same: over content, group and what they have of their own. */
export function taskDigest(
  task: Pick<TaskPut, 'json' | 'blob' | 'group'>,
  identity?: unknown,
): string {
  const content = task.blob ?? `sha256:${sha256(task.json as string).toString('hex')}`
  const own = identity === undefined ? [] : [canonical(identity)]
  return sha256(JSON.stringify([content, task.group ?? null, ...own]))
    .toString('base64url')
    .slice(0, 22)
}

/** A number from the run's seed and the task's key: the same in every attempt and every run of that seed. */
export function taskSeed(seed: number, key: string): number {
  return sha256(`${seed}\0${key}`).readUInt32BE(0)
}

export async function openTaskStore(
  engine: Pick<Engine, 'log' | 'blobs'>,
  run: RunAddress,
  cache: TaskCache,
): Promise<TaskStore> {
  const stream = taskStream(run)
  let head: Position | 'start' = (await engine.log.head(stream)) ?? 'start'
  let last: Promise<unknown> = Promise.resolve()

  /** A record is found by the position before it: so they are written one after another. */
  async function append(contents: readonly string[]): Promise<string[]> {
    const before = head
    const record = Buffer.from(JSON.stringify(contents))
    head = (await engine.log.append(stream, [record], { expect: before })).position
    cache.put(`${stream}@${before}`, contents, record.length)
    return contents.map((_, index) => `${PLACE}${index}:${before}`)
  }

  async function add(tasks: readonly StoredTask[]): Promise<CarriedTask[]> {
    const blobs = new Set(tasks.flatMap(({ blob, files }) => (blob ? [blob, ...files] : files)))
    await Promise.all([...blobs].map((blob) => pinBlob(engine, run, blob)))
    const carried = tasks.map(
      ({
        json = null,
        blob = null,
        own = null,
      }): { -readonly [K in keyof CarriedTask]: string | null } => ({
        ...{ taskJson: json, taskBlob: blob, own },
      }),
    )
    const large: Large[] = []
    for (const task of carried) {
      const { taskJson, own } = task
      if (isLarge(taskJson)) {
        large.push({
          text: taskJson,
          moveTo(place) {
            task.taskJson = null
            task.taskBlob = place
          },
        })
      }
      if (isLarge(own)) {
        large.push({
          text: own,
          moveTo(place) {
            task.own = place
          },
        })
      }
    }
    for (const chunk of chunksOf(large)) {
      const places = await append(chunk.map(({ text }) => text))
      for (const [at, { moveTo }] of chunk.entries()) moveTo(places[at] as string)
    }
    return carried
  }

  async function textAt(place: string): Promise<string> {
    const split = place.indexOf(':', PLACE.length)
    const index = Number(place.slice(PLACE.length, split))
    const before = place.slice(split + 1)
    const name = `${stream}@${before}`
    const contents = cache.get(name) ?? (await read(engine.log, stream, before, name, cache))
    return contents[index] as string
  }

  return {
    add(tasks) {
      const added = last.then(() => add(tasks))
      last = added.catch(() => {})
      return added
    },
    load: (carried) =>
      carried.taskBlob?.startsWith(PLACE)
        ? textAt(carried.taskBlob).then((taskJson) => ({ taskJson, taskBlob: null }))
        : carried,
    loadOwn: (own) => (own?.startsWith(PLACE) ? textAt(own) : own),
  }
}

/** Keeps a blob for as long as the run is kept. Pinning again is fine. */
export async function pinBlob(
  engine: Pick<Engine, 'blobs'>,
  run: RunAddress,
  digest: string,
): Promise<void> {
  try {
    await engine.blobs.pin(`${pinPrefix(run)}${digest}`, digest as Digest)
  } catch (error) {
    if (!isEngineError(error, 'not_found') && !isEngineError(error, 'invalid_argument')) throw error
    throw new SandlotError('blob_unknown', `there is no blob ${digest}`, { cause: error })
  }
}

/** Decoded records of tasks, the latest used ones. Tasks are mostly leased in the order in which they were put. */
export interface TaskCache {
  get(name: string): readonly string[] | undefined
  put(name: string, contents: readonly string[], sizeBytes: number): void
}

export function openTaskCache(): TaskCache {
  const entries = new Map<string, { contents: readonly string[]; sizeBytes: number }>()
  let heldBytes = 0
  return {
    get(name) {
      const entry = entries.get(name)
      if (entry === undefined) return undefined
      entries.delete(name)
      entries.set(name, entry)
      return entry.contents
    },
    put(name, contents, sizeBytes) {
      if (entries.has(name)) return
      entries.set(name, { contents, sizeBytes })
      heldBytes += sizeBytes
      for (const [oldest, entry] of entries) {
        if (heldBytes <= COORDINATOR_LIMITS.taskCacheBytes) return
        entries.delete(oldest)
        heldBytes -= entry.sizeBytes
      }
    },
  }
}

/** A text that does not stay in memory. */
interface Large {
  readonly text: string
  moveTo(place: string): void
}

function isLarge(text: string | null): text is string {
  return text !== null && Buffer.byteLength(text) > COORDINATOR_LIMITS.taskInlineBytes
}

/** By the record they go into. */
function* chunksOf(large: readonly Large[]): Generator<Large[]> {
  let chunk: Large[] = []
  let sizeBytes = 0
  for (const item of large) {
    const bytes = Buffer.byteLength(item.text)
    if (chunk.length > 0 && sizeBytes + bytes > COORDINATOR_LIMITS.taskRecordBytes) {
      yield chunk
      chunk = []
      sizeBytes = 0
    }
    chunk.push(item)
    sizeBytes += bytes
  }
  if (chunk.length > 0) yield chunk
}

async function read(log: Log, stream: string, before: string, name: string, cache: TaskCache) {
  const [record] = await log.read(stream, {
    limit: 1,
    ...(before === 'start' ? {} : { after: before }),
  })
  if (record === undefined) throw new SandlotError('internal', `a task of ${stream} is missing`)
  const contents = JSON.parse(Buffer.from(record.bytes).toString()) as string[]
  cache.put(name, contents, record.bytes.length)
  return contents
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
