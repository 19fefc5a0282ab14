import { PROGRAM_ENV } from '@sandlot/protocol'
import { allFiles, textOf } from '@sandlot/testkit/repository'
import { expect, test } from 'vitest'

const PAGE = 'docs/configuration.md'

/** For the programs that test the guest agent and for the bench's own processes: nobody sets them by hand. */
const INTERNAL = new Set(['SANDLOT_DRIVE_DEBUG', 'SANDLOT_BENCH_MARK'])
/** What programs are told inside of their sandboxes: the guide of rollouts has them. */
const TOLD: ReadonlySet<string> = new Set(Object.values(PROGRAM_ENV))

test('every variable that a source reads or names stands in the configuration page', async () => {
  const named = await variablesOf(
    (await allFiles()).filter((path) => /\.(ts|rs|sh)$|^sandlot$/.test(path)),
  )
  const told = await variablesOf([PAGE])
  expect(
    [...named].filter((name) => !told.has(name) && !INTERNAL.has(name) && !TOLD.has(name)),
  ).toEqual([])
})

test('the configuration page tells of no variable that nothing reads', async () => {
  const files = (await allFiles()).filter((path) => /(config|simulation\.test)\.ts$/.test(path))
  const read = await variablesOf(files)
  const told = await variablesOf([PAGE])
  expect([...told].filter((name) => !read.has(name))).toEqual([])
})

async function variablesOf(paths: readonly string[]): Promise<Set<string>> {
  const found = new Set<string>()
  for (const path of paths) {
    if (path.startsWith('docs/check/')) continue
    for (const [name] of (await textOf(path)).matchAll(/\bSANDLOT_[A-Z_]*[A-Z]\b/g)) found.add(name)
  }
  return found
}
