/**
 * What the engine keeps is read by this program's schemas alone, and one record that can't be read must not keep all others from being
 * served. So each start looks at all of them before anybody reads one, and sets aside what is damaged, or what another version wrote.
 */
import { createHash } from 'node:crypto'
import type { Engine } from '@sandlot/engine'
import type { Logger } from 'pino'
import { z } from 'zod'
import { ALL_RECORDS, DAMAGED_RECORDS } from './coordinator/streams.ts'
import { QUEUE_PREFIX } from './functions/names.ts'
import { queueRecord } from './functions/records.ts'
import { KEY_PREFIX, keyRecord } from './http/keys.ts'
import { decodeJson } from './json.ts'
import { ENDING_PREFIX, endingRecord } from './node/endings.ts'
import { OWNERSHIP_PREFIX, ownershipRecord } from './node/ownership.ts'

interface Kind {
  readonly prefix: string
  readonly schema: z.ZodType
  /** What becomes of it without its record. */
  readonly without: string
}

/** A run's is only looked at for what makes it one: the rest was complete when it was written. */
const runRecord = z.looseObject({
  ...{ schema: z.literal(1), id: z.string(), project: z.string(), name: z.string() },
  ...{ digest: z.string(), createdAtMs: z.number(), specification: z.looseObject({}) },
  finished: z.looseObject({}).nullable(),
})

const KINDS: readonly Kind[] = [
  { prefix: OWNERSHIP_PREFIX, schema: ownershipRecord, without: 'its sandbox is ended' },
  { prefix: ENDING_PREFIX, schema: endingRecord, without: 'how a sandbox ended is not known' },
  {
    prefix: ALL_RECORDS,
    schema: runRecord,
    without: 'its run is unknown; its results stay on disk',
  },
  { prefix: QUEUE_PREFIX, schema: queueRecord, without: 'its queue is unknown' },
  { prefix: KEY_PREFIX, schema: keyRecord, without: 'its key is refused' },
]

/** Sets aside what can't be read. How many. */
export async function checkRecords({ kv }: Pick<Engine, 'kv'>, log: Logger): Promise<number> {
  let damaged = 0
  for (const { prefix, schema, without } of KINDS) {
    for (let after: string | undefined; ; ) {
      const page = await kv.list(prefix, after === undefined ? {} : { after })
      for (const { key, value } of page.entries) {
        const why = problemOf(value, schema)
        if (why === undefined) continue
        const aside = asideOf(key)
        await kv.put(aside, value)
        await kv.delete(key)
        damaged += 1
        log.error(
          { key, aside, why },
          `a record can't be read, and is set aside: ${without}. Another version of the daemon wrote it, or it is damaged; a backup has it as it was`,
        )
      }
      after = page.next
      if (after === undefined) break
    }
  }
  return damaged
}

/** The bytes are as they were, and the key tells which it was, unless that is too long. */
function asideOf(key: string): string {
  const aside = DAMAGED_RECORDS + key
  if (aside.length <= KEY_LENGTH_MAX) return aside
  return `${DAMAGED_RECORDS}${createHash('sha256').update(key).digest('hex')}`
}

const KEY_LENGTH_MAX = 256

/** One line; undefined where it can be read. */
function problemOf(value: Uint8Array, schema: z.ZodType): string | undefined {
  try {
    const { error } = schema.safeParse(decodeJson(value))
    const issue = error?.issues[0]
    return issue && `${issue.path.join('.') || 'it'}: ${issue.message}`
  } catch (error) {
    return (error as Error).message
  }
}
