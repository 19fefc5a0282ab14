import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  listErofsContents,
  MemoryBlobs,
  OciRegistry,
  tarArchive,
  temporaryDirectory,
} from '@sandlot/testkit'
import { expect, test } from 'vitest'
import { type ImageStore, openImageStore } from './store.ts'

const layers = [
  tarArchive([{ path: 'bin/sh', content: 'shell' }]),
  tarArchive([{ path: 'bin/.wh.sh' }, { path: 'bin/tool', content: 'tool' }]),
]
const native = process.arch === 'x64' ? 'amd64' : process.arch

interface Setup extends AsyncDisposable {
  readonly store: ImageStore
  readonly registry: OciRegistry
  readonly directory: string
}

async function setup(env: Record<string, string> = {}): Promise<Setup> {
  const stack = new AsyncDisposableStack()
  const directory = stack.use(await temporaryDirectory()).path
  const registry = stack.use(await OciRegistry.start())
  const store = stack.use(
    await openImageStore({
      directory: join(directory, 'images'),
      openBlob: new MemoryBlobs().open,
      registry: {
        env: { PATH: '/usr/bin:/bin', HOME: directory, ...env },
        policyPaths: [],
      },
    }),
  )
  return { store, registry, directory, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

test('an image comes by its tag, which is resolved to a digest first', async () => {
  await using at = await setup()
  const config = { Env: ['A=1'], Entrypoint: ['/bin/tool'], Cmd: ['--help'], User: 'app' }
  const digest = at.registry.push('owner/name', 'v1', { layers, config })
  const name = `${at.registry.host}/owner/name`
  const lines: string[] = []
  const image = await at.store.build(
    { kind: 'registry', reference: `${name}:v1` },
    { onLog: (line) => lines.push(line) },
  )
  expect(image.source).toEqual({ kind: 'registry', reference: `${name}:v1@${digest}` })
  expect(image.config).toMatchObject({
    env: { A: '1' },
    entrypoint: ['/bin/tool'],
    command: ['--help'],
    user: 'app',
  })
  expect(await listErofsContents(image.layers[1]?.path ?? '')).toEqual([
    'bin directory',
    'bin/sh whiteout 0',
    'bin/tool file tool',
  ])
  expect(lines).toContain(`fetching ${name}@${digest}`)
})

test('a digest that is here is not asked for, a tag that moved is another image', async () => {
  await using at = await setup()
  const reference = `${at.registry.host}/name:latest`
  const digest = at.registry.push('name', 'latest', { layers })
  const first = await at.store.build({ kind: 'registry', reference })
  at.registry.requests.length = 0
  const pinned = `${at.registry.host}/name@${digest}`
  expect((await at.store.build({ kind: 'registry', reference: pinned })).id).toBe(first.id)
  expect(at.registry.requests).toEqual([])
  at.registry.push('name', 'latest', { layers: layers.slice(0, 1) })
  const second = await at.store.build({ kind: 'registry', reference })
  expect(second.layers).toEqual(first.layers.slice(0, 1))
})

test('of several architectures this machine’s is taken', async () => {
  await using at = await setup()
  at.registry.push('name', 'all', { layers, architectures: ['s390x', native] })
  at.registry.push('name', 'other', { layers, architectures: ['s390x'] })
  const build = (tag: string) =>
    at.store.build({ kind: 'registry', reference: `${at.registry.host}/name:${tag}` })
  expect((await build('all')).layers).toHaveLength(2)
  await expect(build('other')).rejects.toMatchObject({
    code: 'image_source_invalid',
    hint: expect.stringContaining('architecture'),
  })
})

test('an image for another machine alone is refused', async () => {
  await using at = await setup()
  const bare = at.registry.push('name', 'bare', { layers, architectures: ['s390x'] })
  expect(bare).toMatch(/^sha256:/)
  const reference = `${at.registry.host}/name@${bare}`
  await expect(at.store.build({ kind: 'registry', reference })).rejects.toMatchObject({
    code: 'image_source_invalid',
  })
})

test('a tag and a repository that are not there', async () => {
  await using at = await setup()
  at.registry.push('name', 'v1', { layers })
  for (const name of ['name:v2', 'other:v1', `name@sha256:${'0'.repeat(64)}`]) {
    const reference = `${at.registry.host}/${name}`
    await expect(at.store.build({ kind: 'registry', reference })).rejects.toMatchObject({
      code: 'registry_image_unknown',
      hint: expect.stringContaining('Check its name'),
    })
  }
})

test('credentials come from the usual file, and are missed by name', async () => {
  await using directory = await temporaryDirectory()
  const file = join(directory.path, 'auth.json')
  await using at = await setup({ REGISTRY_AUTH_FILE: file })
  at.registry.credentials = 'somebody:secret'
  at.registry.push('name', 'v1', { layers })
  const reference = `${at.registry.host}/name:v1`
  const build = () => at.store.build({ kind: 'registry', reference })
  const auth = (credentials: string) =>
    writeFile(
      file,
      JSON.stringify({
        auths: { [at.registry.host]: { auth: Buffer.from(credentials).toString('base64') } },
      }),
    )
  await auth('somebody:wrong')
  await expect(build()).rejects.toMatchObject({
    code: 'registry_denied',
    hint: expect.stringContaining('log in'),
  })
  await auth('somebody:secret')
  expect((await build()).layers).toHaveLength(2)
})

test('a registry that is not there', async () => {
  await using at = await setup()
  const { host } = at.registry
  await at.registry[Symbol.asyncDispose]()
  const source = { kind: 'registry', reference: `${host}/name:v1` } as const
  await expect(at.store.build(source)).rejects.toMatchObject({
    code: 'registry_unreachable',
    message: expect.stringContaining('connection refused'),
  })
})

test('without skopeo it says how to get it', async () => {
  await using at = await setup({ PATH: '/nonexistent' })
  const source = { kind: 'registry', reference: `${at.registry.host}/name:v1` } as const
  await expect(at.store.build(source)).rejects.toMatchObject({
    hint: expect.stringContaining('apt-get install skopeo'),
  })
})

test('one who leaves while the registry is asked ends the question', async () => {
  await using at = await setup()
  const leaver = new AbortController()
  const source = { kind: 'registry', reference: `${at.registry.host}/name:v1` } as const
  const build = at.store.build(source, { signal: leaver.signal })
  leaver.abort(new Error('had enough'))
  await expect(build).rejects.toThrow('had enough')
})
