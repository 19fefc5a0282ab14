import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newDirectory } from '../erofs/inode.ts'
import { readErofsTree } from '../erofs/read-tree.ts'
import { lookIn } from '../steps/tree-path.ts'
import { openImageStore } from '../store.ts'
import { isOlder, nodeExecutable, parseLdd } from './executable.ts'
import { missingLibraries } from './glibc.ts'
import { NODE_PATH } from './own-files.ts'

const NEVER = new AbortController().signal

/** Any program of this machine stands for Node.js: nothing runs it here. */
const PROGRAM = '/bin/true'

async function openStore() {
  const directory = await mkdtemp(join(tmpdir(), 'sandlot-node-'))
  const openBlob = async () => {
    throw new Error('no blobs')
  }
  const store = await openImageStore({ directory, openBlob, nodeExecutable: PROGRAM })
  return {
    store,
    [Symbol.asyncDispose]: async () => {
      await store[Symbol.asyncDispose]()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

test('Node.js lies over the smallest image that it runs in, and is made once', async () => {
  await using at = await openStore()
  const [image, again] = await Promise.all([
    at.store.withNode(undefined),
    at.store.withNode(undefined),
  ])
  expect(again.id).toBe(image.id)
  expect(image.layers).toHaveLength(2)
  const [base, node] = await Promise.all(image.layers.map(({ path }) => readErofsTree(path)))
  const names = NODE_PATH.split('/').slice(1)
  expect(lookIn(node ?? newDirectory())(names)?.kind).toBe('file')
  expect(lookIn(base ?? newDirectory())(['etc', 'passwd'])?.kind).toBe('file')
  // Nobody asked for them by themselves.
  expect(await at.store.list()).toEqual([])
  expect((await at.store.withNode(image.id)).layers.at(-1)?.digest).toBe(image.layers[1]?.digest)
})

test('an image that has no glibc, or is none, is refused by name', async () => {
  await using at = await openStore()
  await expect(at.store.withNode('im_aaaaaaaaaaaaaaaaaaaa')).rejects.toMatchObject({
    code: 'image_unknown',
  })
  const node = await nodeExecutable(PROGRAM, NEVER)
  const musl = newDirectory()
  const lib = newDirectory()
  musl.children.set('lib', lib)
  await expect(missingLibraries(musl, node)).rejects.toThrow('it has no glibc')
  lib.children.set('ld-musl-x86_64.so.1', newDirectory())
  await expect(missingLibraries(musl, node)).rejects.toMatchObject({
    code: 'image_unfit',
    message: expect.stringContaining('it is built on musl (as Alpine is)'),
  })
})

test('an older glibc is refused with its version, and a library that it lacks is brought', async () => {
  await using at = await openStore()
  const [base] = (await at.store.withNode(undefined)).layers
  const tree = await readErofsTree(base?.path ?? '')
  const node = await nodeExecutable(PROGRAM, NEVER)
  const others = [
    { name: 'libc.so.6', path: '' },
    { name: 'libelsewhere.so.1', path: '' },
  ]
  expect(await missingLibraries(tree, { ...node, others })).toEqual(['libelsewhere.so.1'])
  await expect(missingLibraries(tree, { ...node, glibc: [2, 999] })).rejects.toThrow(
    /its glibc is 2\.\d+\./,
  )
})

test('what a program needs is read from what the loader lists', () => {
  const listed = [
    '\tlinux-vdso.so.1 (0x00007f09b7278000)',
    '\tlibstdc++.so.6 => /lib/x86_64-linux-gnu/libstdc++.so.6 (0x00007f09b7000000)',
    '\tlibgone.so.1 => not found',
    '\t/lib64/ld-linux-x86-64.so.2 (0x00007f09b727a000)',
  ].join('\n')
  expect(parseLdd(listed)).toEqual({
    loader: '/lib64/ld-linux-x86-64.so.2',
    libraries: [{ name: 'libstdc++.so.6', path: '/lib/x86_64-linux-gnu/libstdc++.so.6' }],
  })
  expect(parseLdd('\tnot a dynamic executable').loader).toBe(undefined)
  expect(isOlder([2, 9], [2, 28])).toBe(true)
  expect(isOlder([2, 28], [2, 28])).toBe(false)
})
