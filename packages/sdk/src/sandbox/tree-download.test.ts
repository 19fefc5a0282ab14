import {
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as tar from 'tar-stream'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { downloadTree } from './tree-download.ts'
import { localContent, tarOf } from './tree-upload.ts'

let outside: string
let root: string

beforeEach(async () => {
  outside = await mkdtemp(join(tmpdir(), 'sandlot-tree-'))
  root = join(outside, 'root')
})
afterEach(async () => rm(outside, { recursive: true, force: true }))

type Entry = Partial<tar.Header> & { readonly name: string; readonly body?: string }

/** What a sandbox could send: names and links as they are given. */
function tarWith(...entries: Entry[]): AsyncIterable<Uint8Array> {
  const pack = tar.pack()
  for (const { body, ...header } of entries) {
    if (body === undefined) pack.entry(header as tar.Header)
    else pack.entry(header as tar.Header, body)
  }
  pack.finalize()
  return pack as unknown as AsyncIterable<Uint8Array>
}

const file = (name: string, body = 'x'): Entry => ({ name, body })
const directory = (name: string): Entry => ({ name, type: 'directory' })
const link = (name: string, linkname: string): Entry => ({ name, type: 'symlink', linkname })
const hard = (name: string, linkname: string): Entry => ({ name, type: 'link', linkname })

/** Everything beside the root: nothing may come to be there. */
async function strays(): Promise<string[]> {
  return (await readdir(outside)).filter((name) => name !== 'root')
}

describe('what is honest arrives', () => {
  test('files, modes, directories, links inside, odd names', async () => {
    const odd = ['a b', 'line\nbreak', 'ünï', '-rf', '$(true)', 'x'.repeat(200)]
    await downloadTree(
      tarWith(
        directory('d'),
        file('d/e/f', 'deep'),
        { ...file('run'), mode: 0o755 },
        link('d/up', '../run'),
        link('down', 'd/e/f'),
        hard('same', 'run'),
        ...odd.map((name) => file(name, name)),
      ),
      root,
    )
    expect(await readFile(join(root, 'd/e/f'), 'utf8')).toBe('deep')
    expect((await lstat(join(root, 'run'))).mode & 0o111).not.toBe(0)
    expect(await readlink(join(root, 'd/up'))).toBe('../run')
    expect(await readFile(join(root, 'down'), 'utf8')).toBe('deep')
    expect((await lstat(join(root, 'same'))).nlink).toBe(2)
    for (const name of odd) expect(await readFile(join(root, name), 'utf8')).toBe(name)
  })

  test('twice into the same directory', async () => {
    for (const body of ['one', 'two']) {
      await downloadTree(tarWith(directory('d'), file('d/f', body), link('l', 'd/f')), root)
    }
    expect(await readFile(join(root, 'l'), 'utf8')).toBe('two')
  })
})

describe('what is hostile is refused, and writes nothing elsewhere', () => {
  test.each([
    ['a name that goes up', [file('../stray')]],
    ['an absolute name', [file('/../../stray')]],
    ['a name that goes up in its middle', [file('d/../../stray')]],
    ['a hard link to elsewhere', [hard('h', '../stray')]],
    ['a file below a link', [link('l', '.'), file('l/f')]],
    ['a directory below a link', [link('l', 'd'), directory('d'), directory('l/d')]],
    ['a file in place of a directory', [directory('d'), file('d')]],
  ])('%s', async (_, entries) => {
    await expect(downloadTree(tarWith(...entries), root)).rejects.toMatchObject({
      code: 'permission_denied',
    })
    expect(await strays()).toEqual([])
  })

  test('links that lead outside are left out, also by way of another link', async () => {
    await downloadTree(
      tarWith(
        link('absolute', '/etc/passwd'),
        link('up', '..'),
        link('here', '.'),
        link('around', 'here/../../stray'),
        link('d/far', '../../stray'),
        link('d/near', '../f'),
        file('f'),
      ),
      root,
    )
    expect((await readdir(root)).sort()).toEqual(['d', 'f', 'here'])
    expect(await readdir(join(root, 'd'))).toEqual(['near'])
  })

  test('devices and FIFOs are left out', async () => {
    await downloadTree(
      tarWith({ name: 'pipe', type: 'fifo' }, { name: 'disk', type: 'block-device' }, file('f')),
      root,
    )
    expect(await readdir(root)).toEqual(['f'])
  })

  test('a link of this machine inside the target is not followed', async () => {
    await mkdir(root)
    await mkdir(join(outside, 'precious'))
    await symlink(join(outside, 'precious'), join(root, 'd'))
    await expect(downloadTree(tarWith(file('d/f')), root)).rejects.toThrow('no directory')
    expect(await readdir(join(outside, 'precious'))).toEqual([])
  })

  test('a stream that breaks off is told as it broke off', async () => {
    async function* broken() {
      for await (const part of tarWith(file('f', 'y'.repeat(100_000)))) {
        yield part.subarray(0, 700)
        throw new Error('the line went dead')
      }
    }
    await expect(downloadTree(broken(), root)).rejects.toThrow('the line went dead')
  })
})

describe('a directory of this machine', () => {
  test('travels and comes back the same', async () => {
    const from = join(outside, 'from')
    await mkdir(join(from, 'd/empty'), { recursive: true })
    await writeFile(join(from, 'd/large'), Buffer.alloc(1_000_003, 7))
    await writeFile(join(from, 'nothing'), '')
    await writeFile(join(from, 'run'), '#!', { mode: 0o755 })
    await symlink('d/large', join(from, 'l'))
    await downloadTree(tarOf(from), root)
    expect((await readdir(root, { recursive: true })).sort()).toEqual(
      (await readdir(from, { recursive: true })).sort(),
    )
    expect((await readFile(join(root, 'l'))).equals(Buffer.alloc(1_000_003, 7))).toBe(true)
    expect((await lstat(join(root, 'run'))).mode & 0o777).toBe(0o755)
  })

  test('is the same tar each time', async () => {
    const from = join(outside, 'from')
    await mkdir(from)
    for (const name of ['b', 'a', 'c']) await writeFile(join(from, name), name)
    const [one, two] = await Promise.all(
      [tarOf(from), tarOf(from)].map(async (each) => Buffer.concat(await Array.fromAsync(each))),
    )
    expect(one?.equals(two ?? Buffer.alloc(0))).toBe(true)
  })

  test('is refused where a name is not UTF-8, or where there is nothing', async () => {
    const from = join(outside, 'from')
    await mkdir(from)
    await writeFile(Buffer.concat([Buffer.from(`${from}/`), Buffer.from([0xff, 0x61])]), 'x')
    await expect(Array.fromAsync(tarOf(from))).rejects.toThrow('is not UTF-8')
    await expect(localContent(join(from, 'missing'))).rejects.toMatchObject({ code: 'not_found' })
  })
})
