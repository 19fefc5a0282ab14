import { mkdtempSync, writeFileSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { bytes, expectCode } from '../conformance/engine-under-test.ts'
import { dumpSchema, migrate, SCHEMA_VERSION } from './migrate.ts'
import { openSqliteEngine } from './open.ts'

let directory: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'sandlot-engine-'))
})

afterEach(() => rm(directory, { recursive: true }))

test('the migrations together give the frozen schema', async () => {
  const database = new DatabaseSync(':memory:')
  migrate(database)
  await expect(dumpSchema(database)).toMatchFileSnapshot('./schema.sql')
})

test('migrating what is migrated changes nothing', () => {
  const database = new DatabaseSync(':memory:')
  migrate(database)
  const before = dumpSchema(database)
  migrate(database)
  expect(dumpSchema(database)).toBe(before)
})

test('refuses a newer schema, names both versions, and leaves the file as it was', async () => {
  const engine = await openSqliteEngine({ directory })
  await engine.log.append('s', [bytes('a')])
  await engine[Symbol.asyncDispose]()
  const file = join(directory, 'engine.db')
  change(file, `PRAGMA user_version = ${SCHEMA_VERSION + 1}`)
  const before = await readFile(file)
  const details = await expectCode(openSqliteEngine({ directory }), 'schema_newer')
  expect(details).toEqual({ found: SCHEMA_VERSION + 1, known: SCHEMA_VERSION })
  await expect(openSqliteEngine({ directory })).rejects.toThrow(
    `schema version ${SCHEMA_VERSION + 1}, this program knows up to version ${SCHEMA_VERSION}`,
  )
  expect(Buffer.compare(await readFile(file), before)).toBe(0)
  change(file, `PRAGMA user_version = ${SCHEMA_VERSION}`)
  await using again = await openSqliteEngine({ directory })
  expect(await again.log.read('s')).toHaveLength(1)
})

test("refuses another program's database, and a file that is none", async () => {
  const file = join(directory, 'engine.db')
  change(file, 'CREATE TABLE theirs (a)')
  await expectCode(openSqliteEngine({ directory }), 'directory_unusable')
  writeFileSync(file, 'This is a note, and not a database at all. '.repeat(100))
  await expectCode(openSqliteEngine({ directory }), 'directory_unusable')
})

test('refuses a directory that cannot be made, and gives the lock free again', async () => {
  const file = join(directory, 'file')
  writeFileSync(file, '')
  await expectCode(openSqliteEngine({ directory: join(file, 'data') }), 'directory_unusable')
  writeFileSync(join(directory, 'blobs'), 'in the way')
  await expectCode(openSqliteEngine({ directory }), 'directory_unusable')
  await rm(join(directory, 'blobs'))
  await using engine = await openSqliteEngine({ directory })
  await engine.log.append('s', [bytes('a')])
})

function change(file: string, sql: string): void {
  const database = new DatabaseSync(file)
  database.exec(sql)
  database.close()
}
