import { type TarMember, tarArchive } from '@sandlot/testkit'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { TarError } from './header.ts'
import { printable, readTar, type TarEntry } from './reader.ts'

async function* inPieces(bytes: Uint8Array, length: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length)
}

async function readAll(archive: Uint8Array, length = 777): Promise<[TarEntry, string][]> {
  const found: [TarEntry, string][] = []
  for await (const entry of readTar(inPieces(archive, length))) {
    const content = Buffer.concat(await Array.fromAsync(entry.content)).toString('latin1')
    found.push([entry, content])
  }
  return found
}

test('names, owners, times and contents survive byte for byte', async () => {
  const members: TarMember[] = [
    { path: 'odd \xff\xfe\n name', content: 'one', uid: 70_000, gid: 5, mode: 0o4755 },
    { path: `${'d/'.repeat(100)}file`, content: 'x'.repeat(1025) },
    {
      path: 'x',
      content: 'a',
      pax: { path: 'z\xc3\xa9\xff', mtime: '12.000000345', uid: '4000000000' },
    },
    { path: 'link', type: '2', linkPath: '/t'.repeat(90) },
    { path: 'empty' },
  ]
  const found = await readAll(tarArchive(members), 13)
  expect(found.map(([entry]) => entry.path)).toEqual([
    'odd \xff\xfe\n name',
    `${'d/'.repeat(100)}file`,
    'z\xc3\xa9\xff',
    'link',
    'empty',
  ])
  expect(found.map(([, content]) => content.length)).toEqual([3, 1025, 1, 0, 0])
  expect(found[0]?.[0]).toMatchObject({ uid: 70_000, gid: 5, mode: 0o4755, type: 'file' })
  expect(found[2]?.[0]).toMatchObject({
    mtimeSeconds: 12,
    mtimeNanoseconds: 345,
    uid: 4_000_000_000,
  })
  expect(found[3]?.[0]).toMatchObject({ type: 'symlink', linkPath: '/t'.repeat(90) })
})

test.each([
  ['9000000000.999999999', 9_000_000_000, 999_999_999],
  ['1790000000.9999999', 1_790_000_000, 999_999_900],
  ['7', 7, 0],
  ['-2.500000000', 0, 0],
  ['-0.000000001', 0, 0],
])('a time of %s', async (mtime, mtimeSeconds, mtimeNanoseconds) => {
  const [found] = await readAll(tarArchive([{ path: 'a', pax: { mtime } }]))
  expect(found?.[0]).toMatchObject({ mtimeSeconds, mtimeNanoseconds })
})

test('GNU long names and numbers in base 256', async () => {
  const long = tarArchive([{ path: '././@LongLink', type: 'L', content: `${'n'.repeat(300)}\0` }])
  const file = tarArchive([{ path: 'cut', content: 'abc' }])
  const archive = Buffer.concat([long.subarray(0, -1024), file])
  const record = archive.subarray(1024, 1536)
  record.fill(0, 136, 148)
  record[136] = 0x80
  record.writeUInt32BE(0x01020304, 144)
  fixChecksum(record)
  const [found] = await readAll(archive)
  expect(found?.[0].path).toBe('n'.repeat(300))
  expect(found?.[0].mtimeSeconds).toBe(0x01020304)
})

test('content that is not read is skipped', async () => {
  const archive = tarArchive([
    { path: 'a', content: 'x'.repeat(5000) },
    { path: 'b', content: 'y' },
  ])
  const paths: string[] = []
  for await (const entry of readTar(inPieces(archive, 100))) paths.push(entry.path)
  expect(paths).toEqual(['a', 'b'])
})

test.each([
  ['cut in a header', tarArchive([{ path: 'a' }]).subarray(0, 300)],
  ['cut in a content', tarArchive([{ path: 'a', content: 'x'.repeat(600) }]).subarray(0, 700)],
  ['without an end', tarArchive([{ path: 'a' }]).subarray(0, 512)],
  ['of nothing', Buffer.alloc(0)],
  ['of noise', Buffer.alloc(4096, 'noise')],
  ['with a sparse file', tarArchive([{ path: 'a', type: 'S' }])],
  ['with a pax sparse file', tarArchive([{ path: 'a', pax: { 'GNU.sparse.major': '1' } }])],
  ['with an unknown type', tarArchive([{ path: 'a', type: 'Q' }])],
  ['with a negative owner', tarArchive([{ path: 'a', pax: { uid: '-1' } }])],
  ['with a size that is no number', tarArchive([{ path: 'a', pax: { size: '1e9' } }])],
])('an archive %s is refused', async (_name, archive) => {
  await expect(readAll(archive)).rejects.toThrow(TarError)
})

test('damage is a TarError or goes unseen, never anything else', async () => {
  const archive = tarArchive([
    { path: 'a/b', content: 'hello', pax: { path: 'a/long' } },
    { path: 'l', type: '2', linkPath: 'a' },
  ])
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(archive.length - 1), fc.nat(255)), { minLength: 1, maxLength: 8 }),
      async (changes) => {
        const damaged = Buffer.from(archive)
        for (const [at, value] of changes) damaged[at] = value
        for (let at = 0; at + 512 <= damaged.length; at += 512) {
          const record = damaged.subarray(at, at + 512)
          if (record.toString('latin1', 257, 262) === 'ustar') fixChecksum(record)
        }
        await readAll(damaged).catch((cause: unknown) => expect(cause).toBeInstanceOf(TarError))
      },
    ),
    { numRuns: 500 },
  )
})

test('messages show odd bytes escaped', () => {
  expect(printable('a\n\xff"')).toBe('"a\\n\\xff\\""')
})

function fixChecksum(record: Buffer): void {
  record.fill(' ', 148, 156)
  const sum = record.reduce((total, byte) => total + byte, 0)
  record.write(`${sum.toString(8).padStart(6, '0')}\0`, 148, 'latin1')
}
