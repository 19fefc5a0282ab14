import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { temporaryDirectory } from '@sandlot/testkit'
import { expect, test } from 'vitest'
import { sandboxPaths } from './paths.ts'
import { loadState, saveState } from './state.ts'

const limits = { memoryBytes: 1, cpus: 0.5, pidsMax: 2, diskBytes: 3, nofileMax: 4 }
const spec = {
  id: 'sb_1',
  layers: [{ digest: 'sha256:0', path: '/a' }],
  limits,
  hostname: 'box',
  detachedMs: 5,
  lifetimeMs: 6,
}

test('what is saved is loaded, and nothing else lies beside it', async () => {
  await using directory = await temporaryDirectory()
  const paths = sandboxPaths(directory.path, 'h')
  await mkdir(paths.directory, { recursive: true })
  const state = { hostId: 'h', startedAtMs: 1, sentryPid: 2, mounted: [] }
  saveState(paths, state)
  expect(await loadState(paths)).toEqual(state)
  const owned = { ...state, owner: { spec, checkedOutAtMs: 7 } }
  saveState(paths, owned)
  expect(await loadState(paths)).toEqual(owned)
  expect(await readdir(paths.directory)).toEqual(['state.json'])
})

test('of a sandbox that an older version dressed the layers are mounted in their order', async () => {
  await using directory = await temporaryDirectory()
  const paths = sandboxPaths(directory.path, 'h')
  await mkdir(paths.directory, { recursive: true })
  const state = { hostId: 'h', startedAtMs: 1, sentryPid: 2, owner: { spec, checkedOutAtMs: 7 } }
  await writeFile(paths.state, JSON.stringify(state))
  expect(await loadState(paths)).toEqual({ ...state, mounted: ['sha256:0'] })
})

test.each(['', '{', '{}', '[]', '{"hostId":"h","startedAtMs":-1,"sentryPid":0}'])(
  'what can not be read is nobody’s: %j',
  async (text) => {
    await using directory = await temporaryDirectory()
    const paths = sandboxPaths(directory.path, 'h')
    await mkdir(paths.directory, { recursive: true })
    expect(await loadState(paths)).toBeUndefined()
    await writeFile(paths.state, text)
    expect(await loadState(paths)).toBeUndefined()
  },
)
