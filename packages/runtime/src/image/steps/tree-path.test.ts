import { expect, test } from 'vitest'
import { type DirectoryInode, type Inode, newDirectory } from '../erofs/inode.ts'
import { lookIn, textOf, walk } from './tree-path.ts'

const plain = { mode: 0o644, uid: 0, gid: 0, mtimeSeconds: 0, mtimeNanoseconds: 0 }
const file: Inode = { kind: 'file', ...plain, block: 0, sizeBytes: 0 }
const link = (target: string): Inode => ({ kind: 'symlink', ...plain, target })

function directory(children: Record<string, Inode>): DirectoryInode {
  return { ...newDirectory(), children: new Map(Object.entries(children)) }
}

const root = directory({
  bin: link('usr/bin'),
  usr: directory({ bin: directory({ sh: link('dash'), dash: file }) }),
  var: directory({ run: link('/run'), up: link('../..') }),
  run: directory({}),
  round: link('/about'),
  about: link('/round'),
  nowhere: link('/missing/place'),
  file,
})

test.each([
  ['/', '/', true],
  ['', '/', true],
  ['/bin', '/usr/bin', true],
  ['/bin/sh', '/usr/bin/dash', true],
  ['/bin/../lib', '/usr/lib', false],
  ['/../../../file', '/file', true],
  ['/var/run/x', '/run/x', false],
  ['/var/up/file', '/file', true],
  ['//var/./run//', '/run', true],
  ['/nowhere', '/missing/place', false],
  ['/new/../file', '/file', true],
])('%s leads to %s', (path, expected, isThere) => {
  const { names, inode } = walk(lookIn(root), path, { last: 'follow' })
  expect([textOf(names), inode !== undefined]).toEqual([expected, isThere])
})

test('the last name may be kept as it is', () => {
  const { names, inode } = walk(lookIn(root), '/bin/sh', { last: 'keep' })
  expect([textOf(names), inode?.kind]).toEqual(['/usr/bin/sh', 'symlink'])
})

test.each([
  ['/round/x', 'leads in circles'],
  ['/file/x', 'leads through /file, a file'],
  [`/${'n'.repeat(256)}`, 'is too long'],
  ['/d'.repeat(600), 'is too long'],
])('%s is refused', (path, why) => {
  expect(() => walk(lookIn(root), path, { last: 'follow' })).toThrow(
    expect.objectContaining({
      code: 'image_source_invalid',
      message: expect.stringContaining(why),
    }),
  )
})
