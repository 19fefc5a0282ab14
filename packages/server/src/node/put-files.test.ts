import { createRandom } from '@sandlot/core/random'
import type { Engine } from '@sandlot/engine'
import { FakeDriver, type Sandbox } from '@sandlot/runtime'
import { expect, test } from 'vitest'
import type { Lent } from './lend.ts'
import { putFiles } from './put-files.ts'

const SPEC = {
  ...{ id: 'sb_00000000000000000000', layers: [], hostname: 'h', detachedMs: 60_000 },
  limits: { memoryBytes: 2 ** 30, cpus: 1, pidsMax: 64, diskBytes: 2 ** 28, nofileMax: 1_024 },
}
const SEEDS = 200
const PATHS = ['/tests/test.sh', '/tests/wanted', '/tests/data/a', '/tests/data/b', '/app/new/x']
type Files = Sandbox['guest']['files']

/** The files of a new sandbox, and what is lent of it: its calls take any number of turns, as the seed says. */
async function delayedSandbox(driver: FakeDriver, seed: number) {
  const { guest } = await driver.create(SPEC)
  const { files } = guest
  const { next } = createRandom(seed)
  const delay = async () => {
    for (let turns = Math.floor(next() * 20); turns > 0; turns--) await Promise.resolve()
  }
  const delayed = {
    ...files,
    write: (...call: Parameters<Files['write']>) => delay().then(() => files.write(...call)),
    remove: (...call: Parameters<Files['remove']>) => delay().then(() => files.remove(...call)),
    stat: (...call: Parameters<Files['stat']>) => delay().then(() => files.stat(...call)),
  }
  const explain = async (error: unknown) => error
  return { files, lent: { guest: { files: delayed }, explain } as unknown as Lent }
}

const text = Buffer.from('left')
test.each<[string, (files: Files) => Promise<unknown>]>([
  ['nothing', async () => {}],
  ['a file for a directory', (files) => files.write('main', '/tests', text, {})],
  [
    'a file for one further below',
    (files) => files.write('main', '/tests/data', text, { parents: true }),
  ],
  [
    'a directory for a file',
    (files) => files.write('main', '/tests/wanted/deep', text, { parents: true }),
  ],
])('files that are put at once are all there, in whatever order: %s was left', async (_, leave) => {
  for (let seed = 0; seed < SEEDS; seed++) {
    await using driver = new FakeDriver()
    const { files, lent } = await delayedSandbox(driver, seed)
    await leave(files)
    await putFiles(
      lent,
      {
        sandbox: SPEC.id,
        files: PATHS.map((path) => ({ path, bytes: Buffer.from(path), mode: 0o644 })),
      },
      { engine: {} as Engine, signal: new AbortController().signal },
    )
    for (const path of PATHS) {
      const { content } = await files.read('main', path)
      expect(Buffer.concat(await Array.fromAsync(content)).toString(), `seed ${seed}`).toBe(path)
    }
  }
})
