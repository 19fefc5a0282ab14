/** Archives that were made to harm: each is refused in time, or is what it says. With small limits, so that none takes long. */
import { readdir } from 'node:fs/promises'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import {
  listErofs,
  MemoryBlobs,
  ociLayout,
  type TarMember,
  tarArchive,
  temporaryDirectory,
} from '@sandlot/testkit'
import { expect, test, vi } from 'vitest'
import { imageLimits } from './limits.ts'
import { openImageStore } from './store.ts'

vi.mock('./limits.ts', async (original) => {
  const { imageLimits: real } = await original<typeof import('./limits.ts')>()
  const small = {
    layerEntriesMax: 100,
    imageEntriesMax: 150,
    unpackedBytesFree: 2 ** 20,
    tarExtensionBytesMax: 4_096,
    diskLookBytes: 4 * 2 ** 20,
    diskReserveBytes: real.diskReserveBytes as number,
    diskReserveShare: real.diskReserveShare as number,
  }
  return { imageLimits: { ...real, ...small } }
})

async function refused(kind: 'tar' | 'oci', bytes: Uint8Array) {
  await using directory = await temporaryDirectory()
  const blobs = new MemoryBlobs()
  await using store = await openImageStore({ directory: directory.path, openBlob: blobs.open })
  const error = await store.build({ kind, blob: blobs.put(bytes) }).then(
    () => undefined,
    (cause: unknown) => cause,
  )
  const left = (await readdir(directory.path, { recursive: true })).filter((name) =>
    name.endsWith('.erofs'),
  )
  return { error, left }
}

async function check(kind: 'tar' | 'oci', bytes: Uint8Array, says: RegExp, code?: string) {
  const { error, left } = await refused(kind, bytes)
  expect(error).toMatchObject({
    code: code ?? 'image_source_invalid',
    message: expect.stringMatching(says),
    hint: expect.stringMatching(/./),
  })
  expect(left).toEqual([])
}

const many = (count: number, member: (at: number) => TarMember): TarMember[] =>
  Array.from({ length: count }, (_, at) => member(at))

test.each<[string, (at: number) => TarMember]>([
  ['files', (at) => ({ path: `f${at}` })],
  ['times the same name', () => ({ path: 'same' })],
  ['directories', (at) => ({ path: `d${at}/` })],
  ['devices that are left out', (at) => ({ path: `dev/n${at}`, type: '3', device: [1, 3] })],
  ['hard links', (at) => (at === 0 ? { path: 'f' } : { path: `l${at}`, type: '1', linkPath: 'f' })],
])('too many %s', async (_, member) => {
  await check('tar', tarArchive(many(101, member)), /more than 100 entries/)
  expect((await refused('tar', tarArchive(many(90, member)))).error).toBeUndefined()
})

test('too many directories above one another', async () => {
  const paths = many(60, (at) => ({ path: `a${at}/b${at}/c` }))
  await check('tar', tarArchive(paths), /more than 100 entries/)
})

test('too many deletions, and too many entries in all layers', async () => {
  const layer = (members: TarMember[]) => gzipSync(tarArchive(members))
  const deletions = many(101, (at) => ({ path: `.wh.f${at}` }))
  await check('oci', ociLayout({ layers: [layer([{ path: 'a' }]), layer(deletions)] }), /than 100/)
  const layers = ['a', 'b'].map((name) => layer(many(80, (at) => ({ path: `${name}${at}` }))))
  await check('oci', ociLayout({ layers }), /The layers of the image have more than 150 entries/)
})

const bomb = tarArchive([{ path: 'zeros', content: Buffer.alloc(8 * 2 ** 20) }])

test.each([
  ['gzip', gzipSync(bomb)],
  ['zstd', zstdCompressSync(bomb)],
])('a bomb in %s', async (_, packed) => {
  expect(packed.length * imageLimits.unpackedRatioMax).toBeLessThan(bomb.length)
  await check('tar', packed, /unpacks to more than 200 times its size/)
  await check('oci', ociLayout({ layers: [packed] }), /unpacks to more than 200 times its size/)
  expect((await refused('tar', bomb)).error).toBeUndefined()
})

test('a bomb that fills the disk leaves the daemon its share', async () => {
  const content = Buffer.alloc(16 * 2 ** 20, 'not only zeros ')
  Object.assign(imageLimits, { diskReserveBytes: Number.MAX_SAFE_INTEGER, diskReserveShare: 1 })
  await check('tar', tarArchive([{ path: 'large', content }]), /No space left/, 'disk_full')
})

test('headers without an end', async () => {
  const extensions = many(40, () => ({ path: 'x', type: 'x' }))
  await check('tar', tarArchive([...extensions, { path: 'a' }]), /too many extension headers/)
  const globals = many(10, (at) => {
    const record = ` k${at}=${'v'.repeat(1_000)}\n`
    return { path: 'g', type: 'g', content: `${record.length + 4}${record}` }
  })
  const spread = globals.flatMap((global, at) => [global, { path: `f${at}` }])
  await check('tar', tarArchive(spread), /global headers are too large/)
  await check('tar', tarArchive([{ path: `${'n/'.repeat(3_000)}n` }]), /extension header/)
})

test('long names and wild links stay what they are', async () => {
  await using directory = await temporaryDirectory()
  const blobs = new MemoryBlobs()
  await using store = await openImageStore({ directory: directory.path, openBlob: blobs.open })
  const long = `${`${'n'.repeat(199)}/`.repeat(18)}${'n'.repeat(200)}`
  const members: TarMember[] = [
    { path: long, content: 'x' },
    { path: 'absolute', type: '2', linkPath: '/etc/shadow' },
    { path: 'upwards', type: '2', linkPath: '../../../../etc/shadow' },
    { path: 'itself', type: '2', linkPath: 'itself' },
    { path: 'wide', type: '2', linkPath: 'w'.repeat(3_900) },
    { path: 'socket', type: '6' },
    { path: 'dev/sda', type: '4', device: [8, 0] },
  ]
  const image = await store.build({ kind: 'tar', blob: blobs.put(tarArchive(members)) })
  const lines = await listErofs(image.layers[0]?.path ?? '')
  const names = lines.map((line) => line.split(' ')[0])
  expect(names).toContain(long)
  expect(names).not.toContain('dev/sda')
  for (const link of ['absolute', 'upwards', 'itself', 'wide']) {
    expect(lines.find((line) => line.startsWith(`${link} `))).toContain('symlink')
  }
})
