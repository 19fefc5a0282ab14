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
import { writeLocalFile } from './local-file.ts'
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

interface RawEntry {
  readonly name: Buffer
  readonly flag: string
  readonly link?: Buffer
}

/** As the agent sends names that are not UTF-8: the bytes in a header, or in a long name before it. */
async function* rawTar(...entries: readonly RawEntry[]): AsyncGenerator<Uint8Array> {
  for (const { name, flag, link = Buffer.alloc(0) } of entries) {
    if (name.length > 100) {
      const padding = Buffer.alloc(512 - (name.length % 512))
      yield Buffer.concat([rawHeader(Buffer.from('long'), 'L', link, name.length), name, padding])
    }
    yield rawHeader(name.subarray(0, 100), flag, link, 0)
  }
  yield Buffer.alloc(1_024)
}

function rawHeader(name: Buffer, flag: string, link: Buffer, sizeBytes: number): Buffer {
  const header = Buffer.alloc(512)
  name.copy(header, 0)
  header.write(`0000644\0${'0000000\0'.repeat(2)}`, 100)
  header.write(`${sizeBytes.toString(8).padStart(11, '0')}\0${'0'.repeat(11)}\0        `, 124)
  header.write(flag, 156)
  link.copy(header, 157)
  header.write('ustar\0' + '00', 257)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return header
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

  test('names that are not UTF-8, byte for byte', async () => {
    const odd = [Buffer.from('f\xff\xe9', 'latin1'), Buffer.from(`${'l\xff'.repeat(80)}`, 'latin1')]
    const target = Buffer.from('d\xfe/t\xff', 'latin1')
    await downloadTree(
      rawTar(
        { name: Buffer.from('d\xfe', 'latin1'), flag: '5' },
        ...odd.map((name) => ({ name, flag: '0' })),
        { name: target, flag: '0' },
        { name: Buffer.from('link'), flag: '2', link: target },
      ),
      root,
    )
    const names = await readdir(Buffer.from(root), { encoding: 'buffer' })
    const wanted = [Buffer.from('d\xfe', 'latin1'), ...odd, Buffer.from('link')]
    expect(names.sort(Buffer.compare)).toEqual(wanted.sort(Buffer.compare))
    expect(await readlink(join(root, 'link'), { encoding: 'buffer' })).toEqual(target)
    expect((await lstat(Buffer.concat([Buffer.from(`${root}/`), target]))).isFile()).toBe(true)
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

describe('what this machine refuses is said with what to do', () => {
  const failed = (message: RegExp, errno: string) => ({
    code: 'local_file_failed',
    message: expect.stringMatching(message),
    hint: expect.stringMatching(/\.$/),
    details: { errno },
  })

  test('a tree onto a file, a name that is too long', async () => {
    await writeFile(root, 'a file')
    await expect(downloadTree(tarWith(file('f')), root)).rejects.toMatchObject(
      failed(/^cannot make .*root: file already exists \(EEXIST\)$/, 'EEXIST'),
    )
    await rm(root)
    await expect(downloadTree(tarWith(file('n'.repeat(300))), root)).rejects.toMatchObject(
      failed(/^cannot write "n+" below .*: name too long \(ENAMETOOLONG\)$/, 'ENAMETOOLONG'),
    )
  })

  test('a file onto a directory, below a file', async () => {
    async function* content() {
      yield Buffer.from('x')
    }
    await mkdir(root)
    await expect(writeLocalFile(content(), root, 0o644)).rejects.toMatchObject(
      failed(/root is a directory$/, 'EISDIR'),
    )
    await writeFile(join(root, 'f'), 'x')
    const below = join(root, 'f/below')
    await expect(writeLocalFile(content(), below, 0o644)).rejects.toMatchObject(
      failed(/^cannot make .*root.f: file already exists \(EEXIST\)$/, 'EEXIST'),
    )
    expect(await readdir(root)).toEqual(['f'])
  })

  test('what is sent: a path below a file, a file that goes away meanwhile', async () => {
    await mkdir(root)
    await writeFile(join(root, 'f'), 'x')
    await expect(localContent(join(root, 'f/below'))).rejects.toMatchObject(
      failed(/^cannot read .*f.below: not a directory \(ENOTDIR\)$/, 'ENOTDIR'),
    )
    const [one, tree] = [await localContent(join(root, 'f')), await localContent(root)]
    await rm(root, { recursive: true })
    for (const { open } of [one, tree]) {
      await expect(Array.fromAsync(open())).rejects.toMatchObject(
        failed(/^cannot read .*: no such file or directory \(ENOENT\)$/, 'ENOENT'),
      )
    }
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

  test('keeps names that are not UTF-8, and links to them', async () => {
    const from = join(outside, 'from')
    await mkdir(from)
    const bytes = (text: string) => Buffer.from(text, 'latin1')
    const at = (below: string, top = from) => Buffer.concat([Buffer.from(`${top}/`), bytes(below)])
    await mkdir(at('d\xff'))
    const odd = ['d\xff/f\xe9', `d\xff/${'l\xfe'.repeat(100)}`, 'plain']
    for (const name of odd) await writeFile(at(name), bytes(name))
    await symlink(bytes('d\xff/f\xe9'), at('link\xfd'))
    await downloadTree(tarOf(from), root)
    for (const name of odd) expect(await readFile(at(name, root))).toEqual(bytes(name))
    expect(await readFile(at('link\xfd', root))).toEqual(bytes('d\xff/f\xe9'))
  })

  test('is refused where there is nothing', async () => {
    await expect(localContent(join(outside, 'missing'))).rejects.toMatchObject({
      code: 'not_found',
    })
  })
})
