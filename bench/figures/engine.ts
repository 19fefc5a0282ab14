import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { openSqliteEngine } from '@sandlot/engine'
import type { Bench, BenchContext } from '../bench.ts'
import { interleave, ratePerSecond } from '../interleave.ts'
import { temporaryDirectory } from '../temporary.ts'

const RECORD = new Uint8Array(256).fill(0x61)
const TOTAL = 5_000
/** Appends under way at once: so many find themselves in one commit. */
const CONCURRENCY = 64

/** Single records appended by many callers at once, each durable before the next of its caller. */
export const engine: Bench = async (context) => {
  const directory = await temporaryDirectory(context)
  await mkdir(join(directory, 'engine'))
  const ours = context.scope.use(await openSqliteEngine({ directory: join(directory, 'engine') }))
  const insertAll = bareSqlite(context, join(directory, 'bare.db'))
  const slice = { total: TOTAL, concurrency: CONCURRENCY }
  const samples = await interleave(
    context,
    { max: 20 },
    {
      bare: async () => insertAll(),
      ours: () => ratePerSecond(slice, () => ours.log.append('bench', [RECORD])),
    },
  )
  return [
    {
      name: 'engine',
      unit: '/s',
      samples: samples.ours,
      reference: samples.bare,
      note: `${CONCURRENCY} callers, one record each; reference: ${CONCURRENCY} inserts a transaction, nothing else`,
    },
  ]
}

/** The same records into one bare table, in transactions of as many. */
function bareSqlite({ scope }: BenchContext, path: string): () => number {
  const database = new DatabaseSync(path)
  scope.defer(() => database.close())
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL')
  database.exec('CREATE TABLE record (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL)')
  const insert = database.prepare('INSERT INTO record (bytes) VALUES (?)')
  return () => {
    const startedMs = performance.now()
    for (let done = 0; done < TOTAL; done += CONCURRENCY) {
      database.exec('BEGIN')
      for (let each = 0; each < CONCURRENCY; each++) insert.run(RECORD)
      database.exec('COMMIT')
    }
    return TOTAL / ((performance.now() - startedMs) / 1000)
  }
}
