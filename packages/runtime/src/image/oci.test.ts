import { gzipSync, zstdCompressSync } from 'node:zlib'
import {
  listErofsContents,
  MemoryBlobs,
  type OciLayoutInput,
  ociLayout,
  tarArchive,
  temporaryDirectory,
} from '@sandlot/testkit'
import { expect, test } from 'vitest'
import type { Image } from './image.ts'
import { openImageStore } from './store.ts'

interface Built {
  readonly image: Image
  readonly layers: string[][]
}

async function build(layout: Uint8Array): Promise<Built> {
  await using directory = await temporaryDirectory()
  const blobs = new MemoryBlobs()
  await using store = await openImageStore({ directory: directory.path, openBlob: blobs.open })
  const image = await store.build({ kind: 'oci', blob: blobs.put(layout) })
  const layers = await Promise.all(image.layers.map((layer) => listErofsContents(layer.path)))
  return { image, layers }
}

const bottom = tarArchive([
  { path: 'bin/sh', content: 'shell' },
  { path: 'etc/a', content: 'A' },
  { path: 'etc/b', content: 'B' },
  { path: 'dev/' },
  { path: 'proc/' },
  { path: 'run/' },
  { path: 'sys/' },
  { path: 'tmp/' },
])
const upper = tarArchive([
  { path: 'etc/.wh..wh..opq' },
  { path: 'etc/c', content: 'C' },
  { path: 'bin/.wh.sh' },
])

const expectedUpper = [
  'bin directory',
  'bin/sh whiteout 0',
  'etc directory',
  'etc/a whiteout 0',
  'etc/b whiteout 0',
  'etc/c file C',
]

test.each([
  ['plain', (bytes: Buffer) => bytes],
  ['gzip', (bytes: Buffer) => gzipSync(bytes)],
  ['zstd', (bytes: Buffer) => zstdCompressSync(bytes)],
])('each %s layer becomes one EROFS layer', async (_name, pack) => {
  const { layers } = await build(ociLayout({ layers: [pack(bottom), pack(upper)] }))
  expect(layers).toHaveLength(2)
  expect(layers[0]).toContain('bin/sh file shell')
  expect(layers[1]).toEqual(expectedUpper)
})

test('the layout itself may be compressed', async () => {
  const { layers } = await build(gzipSync(ociLayout({ layers: [bottom, upper] })))
  expect(layers[1]).toEqual(expectedUpper)
})

test('layers without anything are left out', async () => {
  const { layers } = await build(ociLayout({ layers: [bottom, tarArchive([]), upper] }))
  expect(layers).toHaveLength(2)
})

test('the configuration comes along', async () => {
  const config = {
    Env: ['A=1', 'B=x=y', 'broken'],
    WorkingDir: '/work',
    User: 'agent:users',
    Entrypoint: ['/entry', '-x'],
    Cmd: ['run'],
    Labels: { team: 'rl' },
  }
  const { image } = await build(ociLayout({ layers: [bottom], config }))
  expect(image.config).toMatchObject({
    env: { A: '1', B: 'x=y', PATH: expect.any(String) },
    workdir: '/work',
    user: 'agent:users',
    entrypoint: ['/entry', '-x'],
    command: ['run'],
    labels: { team: 'rl' },
  })
})

test('an image without a configuration gets the defaults', async () => {
  const { image } = await build(ociLayout({ layers: [bottom] }))
  expect(image.config).toMatchObject({ workdir: '/', user: 'root', command: [] })
})

const broken: [string, OciLayoutInput, RegExp][] = [
  ['a blob that is not what its name says', edited(/^blobs/, 'forged'), /damaged/],
  ['no index', removed(/^index/), /no index\.json/],
  ['an index that is no JSON', edited(/^index/, '{'), /no JSON/],
  ['an index of another shape', edited(/^index/, '{"manifests":[{"digest":"md5:x"}]}'), /digest/],
  ['a layer missing', removed(/^blobs/), /lacks the blob/],
  ['an image for other machines alone', { layers: [bottom], architecture: 's390x' }, /0 images/],
  ['a hostile layer', { layers: [tarArchive([{ path: '../x' }])] }, /\.\./],
  ['a damaged layer', { layers: [gzipSync(bottom).subarray(0, 60)] }, /damaged/],
  ['a layer by xz', { layers: [Buffer.from('\xfd7zXZ\0xxxx', 'latin1')] }, /xz/],
  ['no layers', { layers: [] }, /layers/],
  ...[{ Env: ['A=b\0c'] }, { WorkingDir: '/a\0' }, { User: 'a\0' }, { Cmd: ['a\ud800'] }].map(
    (config): [string, OciLayoutInput, RegExp] => [
      `what no kernel takes in ${Object.keys(config)}`,
      { layers: [bottom], config },
      /configuration holds (a NUL|half a) character/,
    ],
  ),
]
test.each(broken)('a layout with %s is refused', async (_name, input, message) => {
  await expect(build(ociLayout(input))).rejects.toMatchObject({
    code: 'image_source_invalid',
    message: expect.stringMatching(message),
  })
})

test('a layout with two images for this machine is refused', async () => {
  const one = ociLayout({ layers: [bottom] })
  const index = (layout: Buffer): string =>
    /\{"schemaVersion":2,"manifests":.*\}\]\}/.exec(layout.toString('latin1'))?.[0] ?? ''
  const second = ociLayout({ layers: [upper] })
  const manifests = [one, second].flatMap((layout) => JSON.parse(index(layout)).manifests)
  const both = Buffer.concat([
    one.subarray(0, -1024),
    second.subarray(0, -1024),
    tarArchive([{ path: 'index.json', content: JSON.stringify({ manifests }) }]),
  ])
  await expect(build(both)).rejects.toMatchObject({ message: expect.stringMatching(/2 images/) })
})

/** The first member that matches, which for blobs is the bottom layer. */
function edited(path: RegExp, content: string): OciLayoutInput {
  return {
    layers: [bottom, upper],
    edit: (members) => {
      const at = members.findIndex((member) => path.test(member.path))
      return members.map((member, index) => (index === at ? { ...member, content } : member))
    },
  }
}

function removed(path: RegExp): OciLayoutInput {
  return {
    layers: [bottom, upper],
    edit: (members) => {
      const at = members.findIndex((member) => path.test(member.path))
      return members.filter((_member, index) => index !== at)
    },
  }
}
