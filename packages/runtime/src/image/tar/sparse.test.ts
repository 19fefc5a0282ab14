import { type TarMember, tarArchive } from '@sandlot/testkit'
import { describe, expect, test } from 'vitest'
import { TarError } from './header.ts'
import { readTar } from './reader.ts'

const BLOCK = 512

function sparse(realSize: number, map: string, data = ''): TarMember {
  const padded = map.padEnd(Math.ceil(map.length / BLOCK) * BLOCK, '\0')
  return {
    path: 'GNUSparseFile.1/a',
    content: padded + data,
    pax: {
      'GNU.sparse.major': '1',
      'GNU.sparse.minor': '0',
      'GNU.sparse.name': 'a',
      'GNU.sparse.realsize': String(realSize),
    },
  }
}

async function read(archive: Buffer, piece = archive.length) {
  async function* pieces() {
    for (let at = 0; at < archive.length; at += piece) yield archive.subarray(at, at + piece)
  }
  const found: [string, string][] = []
  for await (const { path, sizeBytes, content } of readTar(pieces())) {
    const bytes = Buffer.concat(await Array.fromAsync(content))
    expect(bytes.length).toBe(sizeBytes)
    found.push([path, bytes.toString('latin1')])
  }
  return found
}

test('holes are zeros, and what follows is found', async () => {
  const archive = tarArchive([
    sparse(12, '2\n2\n3\n8\n2\n', 'abcde'),
    sparse(4, '0\n'),
    { path: 'b', content: 'after' },
  ])
  const expected = [
    ['a', '\0\0abc\0\0\0de\0\0'],
    ['a', '\0\0\0\0'],
    ['b', 'after'],
  ]
  for (const piece of [archive.length, 700, 1]) expect(await read(archive, piece)).toEqual(expected)
})

test('a long map spans blocks', async () => {
  const regions = Array.from({ length: 200 }, (_, index) => `${index * 2}\n1\n`).join('')
  const archive = tarArchive([sparse(400, `200\n${regions}`, 'x'.repeat(200))])
  expect(await read(archive, 100)).toEqual([['a', 'x\0'.repeat(200)]])
})

test('what is not read is skipped', async () => {
  const archive = tarArchive([sparse(12, '1\n2\n3\n', 'abc'), { path: 'b' }])
  const names: string[] = []
  async function* pieces() {
    yield archive
  }
  for await (const { path } of readTar(pieces())) names.push(path)
  expect(names).toEqual(['a', 'b'])
})

describe('refused', () => {
  test.each([
    ['a map of noise', sparse(12, 'noise\n')],
    ['a map without an end', sparse(12, '9'.repeat(BLOCK))],
    ['a region beyond the end', sparse(4, '1\n2\n3\n', 'abc')],
    ['regions that overlap', sparse(12, '2\n0\n4\n2\n4\n', 'abcdefgh')],
    ['less data than told', sparse(12, '1\n0\n9\n', 'abc')],
    ['too many regions', sparse(12, '99999999\n')],
    ['a negative size', sparse(-1, '0\n')],
    ['an older format', { path: 'a', pax: { 'GNU.sparse.size': '5' } }],
    ['a directory', { ...sparse(0, '0\n'), type: '5' }],
  ])('%s', async (_name, member) => {
    await expect(read(tarArchive([member]))).rejects.toThrow(TarError)
  })
})
