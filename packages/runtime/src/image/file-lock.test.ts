import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { temporaryDirectory } from '@sandlot/testkit'
import { expect, test } from 'vitest'
import { run } from '../process/run.ts'
import { acquireFileLock, tryFileLock } from './file-lock.ts'

const fixture = fileURLToPath(new URL('fixtures/count-locked.ts', import.meta.url))
const signal = AbortSignal.timeout(60_000)

test('one at a time has it, and nothing is left of it', async () => {
  await using directory = await temporaryDirectory()
  const path = join(directory.path, 'lock')
  const held = await acquireFileLock(path, signal)
  expect(tryFileLock(path)).toBeUndefined()
  const next = acquireFileLock(path, signal)
  held[Symbol.dispose]()
  const second = await next
  // A second end of the first takes nothing from who has it now.
  held[Symbol.dispose]()
  expect(tryFileLock(path)).toBeUndefined()
  second[Symbol.dispose]()
  expect(await readdir(directory.path)).toEqual([])
})

test('its file stays where it is wanted', async () => {
  await using directory = await temporaryDirectory()
  const path = join(directory.path, 'lock')
  tryFileLock(path, { fileStays: true })?.[Symbol.dispose]()
  expect(await readdir(directory.path)).toEqual(['lock'])
})

test('of processes that come and go none has it beside another', async () => {
  await using directory = await temporaryDirectory()
  const [lock, number] = [join(directory.path, 'lock'), join(directory.path, 'number')]
  await writeFile(number, '0')
  const argv = ['--disable-warning=ExperimentalWarning', fixture, lock, number, '15']
  const options = { timeoutMs: 60_000 }
  const all = await Promise.all(
    Array.from({ length: 4 }, () => run(process.execPath, argv, options)),
  )
  expect(all.map(({ problem }) => problem)).toEqual(Array(4).fill(undefined))
  expect(await readFile(number, 'utf8')).toBe('60')
  expect(await readdir(directory.path)).toEqual(['number'])
})
