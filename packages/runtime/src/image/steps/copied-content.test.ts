/** What copies are known by: their files, and not the times of those. */
import { createHash } from 'node:crypto'
import type { BuildStep } from '@sandlot/protocol'
import {
  type BuildBench,
  buildBench,
  copiedContent,
  type TarMember,
  tarArchive,
} from '@sandlot/testkit'
import { expect, test } from 'vitest'

const baseOf = (at: BuildBench) => ({ kind: 'tar', blob: at.tar([{ path: 'bin/sh' }]) }) as const

function files(mtimeSeconds: number): TarMember[] {
  return [
    { path: 'd/', mtimeSeconds },
    { path: 'd/a', content: 'A'.repeat(100_000), mtimeSeconds },
    { path: 'empty', mtimeSeconds },
  ]
}

const content = copiedContent(files(0))
const copy = (blob: string): BuildStep => ({ kind: 'copy', blob, content, to: '/work' })

test('the same files at other times are the same step, whose tar need not be there', async () => {
  await using at = await buildBench()
  const first = await at.build(baseOf(at), [copy(at.tar(files(7)))])
  const { opened } = at.blobs
  const missing = `sha256:${'0'.repeat(64)}`
  expect(await at.build(baseOf(at), [copy(missing)])).toEqual(first)
  expect(at.blobs.opened).toBe(opened)
  expect((await at.layers(first)).flat()).toContainEqual(
    expect.stringMatching(/^work\/d\/a file 644 0:0 7 /),
  )
})

test('over another image they are copied with the times that they have now', async () => {
  await using at = await buildBench()
  const env: BuildStep = { kind: 'env', env: { A: '1' } }
  await at.build(baseOf(at), [copy(at.tar(files(7)))])
  const next = await at.build(baseOf(at), [env, copy(at.tar(files(9)))])
  expect((await at.layers(next)).flat()).toContainEqual(
    expect.stringMatching(/^work\/d\/a file 644 0:0 9 /),
  )
})

test.each<[what: string, members: TarMember[]]>([
  ['other bytes', [...files(7).slice(0, 2), { path: 'empty', content: '!' }]],
  ['another name', [...files(7).slice(0, 2), { path: 'void' }]],
  ['another mode', [...files(7).slice(0, 2), { path: 'empty', mode: 0o600 }]],
  ['another owner', [...files(7).slice(0, 2), { path: 'empty', uid: 1 }]],
  ['another kind', [...files(7).slice(0, 2), { path: 'empty/' }]],
  ['another order', files(7).toReversed()],
  ['one more', [...files(7), { path: 'more' }]],
  ['one less', files(7).slice(1)],
])('a tar with %s than announced is refused, and nothing stays of it', async (_what, members) => {
  await using at = await buildBench()
  await expect(at.build(baseOf(at), [copy(at.tar(members))])).rejects.toMatchObject({
    code: 'image_source_invalid',
    message: expect.stringContaining(`was announced with ${content}`),
  })
  const image = await at.build(baseOf(at), [copy(at.tar(files(7)))])
  expect((await at.layers(image)).flat()).toContainEqual(
    expect.stringMatching(/^work\/empty file 644 0:0 7/),
  )
})

test('what a build lacks is named as a whole before anything runs, and what is built is not', async () => {
  await using at = await buildBench(() => ({}))
  const lost = (name: string) => tarArchive([{ path: name }])
  const base = baseOf(at)
  const run: BuildStep = { kind: 'run', command: 'true' }
  const built = { kind: 'copy', blob: at.tar([{ path: 'x' }]), to: '/' } as const
  await at.build(base, [built])
  const digests = ['one', 'two', 'three'].map(
    (name) => `sha256:${createHash('sha256').update(lost(name)).digest('hex')}`,
  )
  const [one = '', two = '', three = ''] = digests
  const other = { kind: 'built', base: { kind: 'tar', blob: two }, steps: [] } as const
  const steps: BuildStep[] = [
    { ...built, content: undefined },
    run,
    { kind: 'copy', blob: one, to: '/' },
    { kind: 'copyFrom', source: { ...other, steps: [...other.steps] }, paths: ['/'], to: '/y' },
    { kind: 'copy', blob: three, to: '/' },
  ]
  await expect(at.build(base, steps)).rejects.toMatchObject({
    code: 'blob_unknown',
    blobs: [one, two, three],
  })
  expect(at.machines).toEqual([])
  for (const name of ['one', 'two', 'three']) at.blobs.put(lost(name))
  expect((await at.build(base, steps)).layers).toHaveLength(5)
})
