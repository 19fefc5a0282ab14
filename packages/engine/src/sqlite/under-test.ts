import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { MakeEngine } from '../conformance/engine-under-test.ts'
import { FakeClock } from '../conformance/fake-clock.ts'
import { SqliteEngine, type SqliteEngineParts } from './engine.ts'

/** The SQLite engine as the conformance suites want it: in a temporary directory of its own. */
export const makeSqliteEngine: MakeEngine = async ({ busFaults } = {}) => {
  const clock = new FakeClock()
  const directory = await mkdtemp(join(tmpdir(), 'sandlot-engine-'))
  const parts: SqliteEngineParts = {
    storage: { directory, durability: 'process' },
    clock,
    busFaults,
  }
  let engine = await SqliteEngine.open(parts)
  return {
    get engine() {
      return engine
    },
    clock,
    async crash() {
      await engine.crash()
      engine = await SqliteEngine.open(parts)
      return engine
    },
    async reopen() {
      await engine[Symbol.asyncDispose]()
      engine = await SqliteEngine.open(parts)
      return engine
    },
    async [Symbol.asyncDispose]() {
      await engine[Symbol.asyncDispose]()
      await rm(directory, { recursive: true })
    },
  }
}

/** A directory that is removed with all that is in it. */
export async function temporaryDirectory(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'sandlot-engine-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true }) }
}
