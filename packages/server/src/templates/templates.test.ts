import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openSqliteEngine } from '@sandlot/engine'
import { newId } from '@sandlot/protocol'
import { type ImageStore, openImageStore } from '@sandlot/runtime'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { startTestDaemon, type TestDaemon, testDirectories } from '../testing/daemon.ts'
import { smallTar } from '../testing/tar.ts'
import { type TemplateMemory, Templates } from './templates.ts'

const digestOf = (bytes: Uint8Array) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

async function sourceAt(at: TestDaemon, name: string) {
  const bytes = smallTar(name, 'content')
  const blob = digestOf(bytes)
  await at.ask('PUT', `/v1/blobs/${blob}`, { body: bytes })
  return { kind: 'tar', blob }
}

async function prepare(at: TestDaemon, json: unknown) {
  const { text } = await at.ask('POST', '/v1/templates', { json })
  const lines = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  return lines.at(-1)
}

test('the same content is the same template, names and tags are its newest', async () => {
  await using at = await startTestDaemon()
  const source = await sourceAt(at, 'a')
  const resources = { memory: '256MiB' }
  const first = await prepare(at, { source, resources, name: 'first', tags: { a: '1' } })
  expect(first).toMatchObject({ kind: 'done', template: { kind: 'filesystem', name: 'first' } })
  const second = await prepare(at, { source, resources, name: 'second' })
  expect(second.template).toEqual({ ...first.template, name: 'second' })
  const other = await prepare(at, { source })
  expect(other.template.id).not.toBe(first.template.id)
  const { id } = first.template
  expect((await at.ask('GET', `/v1/templates/${id}`)).json).toEqual(second.template)
  const listed = (await at.ask('GET', '/v1/templates')).json as { items: { id: string }[] }
  expect(listed.items.map((item) => item.id).sort()).toEqual([id, other.template.id].sort())
})

test('the one that was prepared under a name last has it, and is looked up by it', async () => {
  await using directories = await testDirectories()
  const ids: string[] = []
  {
    await using at = await startTestDaemon({ directories })
    for (const file of ['a', 'b']) {
      const source = await sourceAt(at, file)
      ids.push((await prepare(at, { source, name: 'env/it' })).template.id)
    }
    const source = await sourceAt(at, 'a')
    await prepare(at, { source, name: 'env/it' })
  }
  await using at = await startTestDaemon({ directories })
  const path = `/v1/templates/${encodeURIComponent('env/it')}`
  expect((await at.ask('GET', path)).json).toMatchObject({ id: ids[0], name: 'env/it' })
  expect((await at.ask('GET', `/v1/templates/${ids[1]}`)).json).not.toHaveProperty('name')
  const named = (await at.ask('GET', '/v1/templates?name=env/it')).json as { items: object[] }
  expect(named.items).toMatchObject([{ id: ids[0] }])
  expect((await at.ask('DELETE', path)).status).toBe(204)
  expect(await at.ask('GET', path)).toMatchObject({ status: 404, code: 'template_unknown' })
})

test('templates that are prepared under one name at once leave it to one of them', async () => {
  await using at = await startTestDaemon()
  const files = ['a', 'b', 'c', 'd']
  const sources = await Promise.all(files.map((file) => sourceAt(at, file)))
  await Promise.all(sources.map((source) => prepare(at, { source, name: 'one' })))
  const { items } = (await at.ask('GET', '/v1/templates')).json as { items: { name?: string }[] }
  expect(items).toHaveLength(files.length)
  expect(items.filter(({ name }) => name === 'one')).toHaveLength(1)
})

test('of those who prepare the same at once each gets its own name', async () => {
  await using at = await startTestDaemon()
  const source = await sourceAt(at, 'a')
  const names = ['first', 'second', 'third']
  const all = await Promise.all(names.map((name) => prepare(at, { source, name })))
  expect(all.map(({ template }) => template.name)).toEqual(names)
  expect(new Set(all.map(({ template }) => template.id)).size).toBe(1)
})

test('a template keeps its image until it is forgotten', async () => {
  await using at = await startTestDaemon()
  const { template } = await prepare(at, { source: await sourceAt(at, 'a') })
  const removeImage = () => at.ask('DELETE', `/v1/images/${template.image}`)
  expect(await removeImage()).toMatchObject({ status: 409, code: 'image_in_use' })
  expect((await at.ask('DELETE', `/v1/templates/${template.id}`)).status).toBe(204)
  expect((await removeImage()).status).toBe(200)
  const again = await at.ask('DELETE', `/v1/templates/${template.id}`)
  expect(again).toMatchObject({ status: 404, code: 'template_unknown' })
  expect((await at.ask('GET', `/v1/templates/${newId('template')}`)).code).toBe('template_unknown')
  expect((await at.ask('GET', '/v1/templates/x')).code).toBe('template_unknown')
})

test('what fails says so in the last line, and leaves no template', async () => {
  await using at = await startTestDaemon()
  const source = { kind: 'tar', blob: digestOf(Buffer.from('nobody has it')) }
  expect(await prepare(at, { source })).toMatchObject({
    kind: 'error',
    error: { code: 'blob_unknown', hint: expect.any(String) },
  })
  expect(((await at.ask('GET', '/v1/templates')).json as { items: unknown[] }).items).toEqual([])
  const refused = await at.ask('POST', '/v1/templates', { json: { source, start: 'server' } })
  expect(refused).toMatchObject({ status: 400, code: 'invalid_request' })
})

const NO_MEMORY: TemplateMemory = {
  save: async () => newId('snapshot'),
  has: () => false,
  isRestorable: async () => false,
  announce: () => {},
  drop: async () => {},
}

test.each(['filesystem', 'memory'] as const)(
  'a template of the kind %s whose parts were removed meanwhile is none',
  async (snapshot) => {
    await using directories = await testDirectories()
    const { dataDirectory: directory } = directories
    await using engine = await openSqliteEngine({ directory: `${directory}/engine` })
    const { digest: blob } = await engine.blobs.put(smallTar('a', 'b'))
    const openBlob = async () => (await engine.blobs.open(blob)).body
    await using images = await openImageStore({ directory: `${directory}/images`, openBlob })
    const removing: Pick<ImageStore, 'build' | 'find' | 'pin'> = {
      build: async (source, wait) => {
        const built = await images.build(source, wait)
        if (snapshot === 'filesystem') await images.remove(built.id)
        return built
      },
      find: (id) => images.find(id),
      pin: (id) => images.pin(id),
    }
    const templates = await Templates.open({
      ...{ engine, images: removing as ImageStore, memory: NO_MEMORY, now: Date.now },
      log: pino({ level: 'silent' }),
      onImage: async () => {},
      imageOf: async (_, id) => id,
    })
    const source = { kind: 'tar', blob } as const
    await expect(templates.prepare('default', { source, snapshot }, {})).rejects.toMatchObject({
      code: 'template_unknown',
      message: expect.stringContaining('was removed while'),
      hint: 'Prepare it again.',
    })
    expect(await templates.list('default')).toEqual([])
  },
)

test('a template that another version of the daemon wrote is prepared again', async () => {
  await using directories = await testDirectories()
  const { dataDirectory: directory } = directories
  let id = ''
  {
    await using at = await startTestDaemon({ directories })
    id = (await prepare(at, { source: await sourceAt(at, 'a') })).template.id
  }
  {
    await using engine = await openSqliteEngine({ directory: join(directory, 'engine') })
    await engine.kv.put(`template/default/${id}`, Buffer.from(`{"id":"${id}","kind":"of old"}`))
  }
  await using at = await startTestDaemon({ directories })
  expect((await at.ask('GET', '/v1/templates')).json).toMatchObject({ items: [] })
  const refused = await at.ask('POST', '/v1/sandboxes', { json: { from: id } })
  expect(refused).toMatchObject({ status: 404, code: 'template_unknown' })
  expect((await prepare(at, { source: await sourceAt(at, 'a') })).template.id).toBe(id)
  expect((await at.ask('POST', '/v1/sandboxes', { json: { from: id } })).status).toBe(201)
})

test('one whose image has a damaged record keeps nobody from starting, says the file, and goes on when that is mended', async () => {
  await using directories = await testDirectories()
  const { dataDirectory } = directories
  const wanted = { name: 'kept' }
  const saved = await (async () => {
    await using at = await startTestDaemon({ directories })
    return (await prepare(at, { source: await sourceAt(at, 'a'), ...wanted })).template
  })()
  const file = join(dataDirectory, 'images', 'images', `${saved.image}.json`)
  const whole = await readFile(file)
  await writeFile(file, whole.subarray(0, 20))
  {
    await using at = await startTestDaemon({ directories })
    const refused = await at.ask('POST', '/v1/sandboxes', { json: { from: 'kept' } })
    expect(refused.json).toMatchObject({ error: { message: expect.stringContaining(file) } })
    expect(refused.status).toBeLessThan(500)
    await writeFile(file, whole)
    expect((await at.ask('POST', '/v1/sandboxes', { json: { from: 'kept' } })).status).toBe(201)
  }
  await using at = await startTestDaemon({ directories })
  expect((await at.ask('GET', '/v1/templates/kept')).json).toEqual(saved)
})
