import { readFileSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { EngineError } from '../error.ts'

/** Oldest first; the n-th brings the schema to version n. A file that was released never changes. */
const MIGRATIONS = ['0001-initial.sql'] as const

export const SCHEMA_VERSION = MIGRATIONS.length

/** "SndL", so that a file of another program is not taken for ours. */
const APPLICATION_ID = 0x536e644c

/** Refuses a database that is newer than this program, or another program's. Writes nothing. */
export function checkSchema(database: DatabaseSync, known: number = SCHEMA_VERSION): void {
  const found = readPragma(database, 'user_version')
  const application = readPragma(database, 'application_id')
  if (application !== APPLICATION_ID && (application !== 0 || !isEmpty(database))) {
    throw new EngineError(
      'directory_unusable',
      'the database file there belongs to another program',
      {
        hint: 'Use another data directory.',
      },
    )
  }
  if (found > known) {
    throw new EngineError(
      'schema_newer',
      `the data is of schema version ${found}, this program knows up to version ${known}`,
      { details: { found, known } },
    )
  }
}

/** Brings the schema to this program's version, each step a transaction of its own. */
export function migrate(database: DatabaseSync): void {
  for (let version = readPragma(database, 'user_version'); version < SCHEMA_VERSION; version++) {
    const file = new URL(`./migrations/${MIGRATIONS[version]}`, import.meta.url)
    database.exec('BEGIN IMMEDIATE')
    try {
      database.exec(readFileSync(file, 'utf8'))
      database.exec(
        `PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${version + 1}`,
      )
      database.exec('COMMIT')
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK')
      throw error
    }
  }
}

/** The schema as SQL text, in a fixed order: what the frozen dump is compared with. */
export function dumpSchema(database: DatabaseSync): string {
  const rows = database
    .prepare(
      "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY type, name",
    )
    .all() as { sql: string }[]
  return `-- Schema version ${SCHEMA_VERSION}.\n${rows.map((row) => `${row.sql};\n`).join('')}`
}

function readPragma(database: DatabaseSync, name: string): number {
  return Number(Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0])
}

function isEmpty(database: DatabaseSync): boolean {
  return database.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() === undefined
}
