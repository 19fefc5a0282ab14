import { buildBench, listErofs, ociLayout, tarArchive } from '@sandlot/testkit'
import { expect, test } from 'vitest'

const long = `${'d'.repeat(120)}/${'n'.repeat(200)}`
const layers = [
  tarArchive([
    { path: 'bin/tool', content: 'tool', mode: 0o750, uid: 5_000_000, gid: 7 },
    { path: 'bin/same', type: '1', linkPath: 'bin/tool' },
    { path: 'etc/old', content: 'old' },
    { path: 'etc/gone', content: 'gone' },
    { path: 'odd\xff', content: 'odd', pax: { mtime: '12.000000345' } },
    { path: long, content: 'x'.repeat(10_000) },
    { path: 'link', type: '2', linkPath: `../${'t'.repeat(150)}` },
    { path: 'fifo', type: '6' },
  ]),
  tarArchive([
    { path: 'etc/.wh.gone' },
    { path: 'etc/old', content: 'new' },
    { path: 'bin/.wh.same' },
  ]),
]
const config = {
  Env: ['A=1', 'PATH=/bin'],
  WorkingDir: '/work',
  User: 'app',
  Entrypoint: ['/bin/tool'],
  Cmd: ['-x'],
  Labels: { team: 'rl' },
}

async function collected(stream: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = []
  for await (const part of stream) parts.push(part)
  return Buffer.concat(parts)
}

test('an OCI archive brings back the same files, layers and configuration', async () => {
  await using at = await buildBench()
  const image = await at.store.build({
    kind: 'oci',
    blob: at.blobs.put(ociLayout({ layers, config })),
  })
  const archive = await collected(at.store.export(image.id, 'oci'))
  const again = await at.store.build({ kind: 'oci', blob: at.blobs.put(archive) })
  expect(again.config).toEqual(image.config)
  const lists = async ({ layers: all }: typeof image) =>
    Promise.all(all.map(({ path }) => listErofs(path)))
  expect(await lists(again)).toEqual(await lists(image))
  expect(await collected(at.store.export(again.id, 'oci'))).toEqual(archive)
})

test('a tar has all that is seen, and nothing that is not', async () => {
  await using at = await buildBench()
  const image = await at.store.build({
    kind: 'oci',
    blob: at.blobs.put(ociLayout({ layers, config })),
  })
  const tar = await collected(at.store.export(image.id, 'tar'))
  const again = await at.store.build({ kind: 'tar', blob: at.blobs.put(tar) })
  expect(again.layers).toHaveLength(1)
  const lines = await listErofs(again.layers[0]?.path ?? '')
  const named = (name: string) => lines.filter((line) => line.startsWith(`${name} `))
  expect(named('etc/old')).toEqual([expect.stringMatching(/ new$/)])
  expect([named('etc/gone'), named('bin/same')]).toEqual([[], []])
  expect(named('bin/tool')).toEqual([expect.stringMatching(/file 750 5000000:7/)])
  expect(named('odd\xff')).toHaveLength(1)
  expect(lines.filter((line) => line.startsWith(long))).toHaveLength(1)
})

test('what is not there can’t be exported', async () => {
  await using at = await buildBench()
  await expect(collected(at.store.export(`im_${'a'.repeat(20)}`, 'oci'))).rejects.toMatchObject({
    code: 'image_unknown',
  })
})
