import {
  listErofsContents,
  MemoryBlobs,
  ociLayout,
  type TarMember,
  tarArchive,
  temporaryDirectory,
} from '@sandlot/testkit'
import { expect, test } from 'vitest'
import { openImageStore } from './store.ts'

/** What each layer of an image adds, but for the mount points that every image has. */
async function layersOf(...layers: TarMember[][]): Promise<string[][]> {
  await using directory = await temporaryDirectory()
  const blobs = new MemoryBlobs()
  await using store = await openImageStore({ directory: directory.path, openBlob: blobs.open })
  const layout = ociLayout({ layers: layers.map((members) => tarArchive(members)) })
  const image = await store.build({ kind: 'oci', blob: blobs.put(layout) })
  const listed = await Promise.all(image.layers.map((layer) => listErofsContents(layer.path)))
  return listed.map((lines) => lines.filter((line) => !/^(dev|proc|run|sys|tmp) /.test(line)))
}

const link = (path: string, linkPath: string): TarMember => ({ path, type: '2', linkPath })
const base: TarMember[] = [
  { path: 'usr/bin/sh', content: 'shell' },
  link('bin', 'usr/bin'),
  link('sbin', '/bin'),
  link('out', '../../../usr'),
]

test('a path through a link of a layer below leads where a kernel would go', async () => {
  const [, upper] = await layersOf(base, [
    { path: 'bin/tool', content: 'T' },
    { path: 'sbin/admin', content: 'A' },
    { path: 'out/bin/more', content: 'M' },
    { path: 'bin/.wh.sh' },
  ])
  expect(upper).toEqual([
    'usr directory',
    'usr/bin directory',
    'usr/bin/admin file A',
    'usr/bin/more file M',
    'usr/bin/sh whiteout 0',
    'usr/bin/tool file T',
  ])
})

test('a link of the layer itself is followed as well, one that is deleted or replaced is not', async () => {
  const [, upper] = await layersOf(base, [
    link('lib', 'usr/lib'),
    { path: 'lib/x.so', content: 'X' },
    { path: '.wh.sbin' },
    { path: 'sbin/own', content: 'O' },
    { path: 'out/', content: '' },
    { path: 'out/here', content: 'H' },
  ])
  expect(upper).toEqual(
    expect.arrayContaining([
      'usr/lib/x.so file X',
      'sbin directory',
      'sbin/own file O',
      'out directory',
      'out/here file H',
    ]),
  )
  expect(upper).not.toContain('usr/bin directory')
})

test('a hard link to a file of a layer below brings it, under both names', async () => {
  const [, middle, top] = await layersOf(
    base,
    [{ path: 'bin/dash', type: '1', linkPath: 'bin/sh' }],
    [{ path: 'ash', type: '1', linkPath: 'bin/dash' }],
  )
  expect(middle).toEqual([
    'usr directory',
    'usr/bin directory',
    'usr/bin/dash file shell',
    'usr/bin/sh file shell',
  ])
  expect(top).toEqual(expect.arrayContaining(['ash file shell', 'usr/bin/dash file shell']))
})

test.each<[string, TarMember[], string]>([
  ['in circles', [link('a', 'b'), link('b', 'a'), { path: 'a/x' }], 'circles'],
  ['through a file', [{ path: 'usr/bin/sh/x' }], 'no directory'],
  ['to nothing', [{ path: 'h', type: '1', linkPath: 'bin/none' }], 'hard link to nothing'],
  [
    'to what is deleted',
    [{ path: 'bin/.wh.sh' }, { path: 'h', type: '1', linkPath: 'bin/sh' }],
    'nothing',
  ],
])('a path that leads %s is refused', async (_name, members, message) => {
  await expect(layersOf(base, members)).rejects.toMatchObject({
    code: 'image_source_invalid',
    message: expect.stringContaining(message),
  })
})
