/**
 * What a key of another project gets of each route and each request of the WebSocket: of all that a project has nothing, and in no way
 * something else than of what never was. A new route has no row here, which neither compiles nor passes.
 */
import { createHash } from 'node:crypto'
import {
  CONNECT_OPS,
  type ConnectOp,
  type ConnectRequest,
  keyCreated,
  newId,
  ROUTES,
  type RouteName,
} from '@sandlot/protocol'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connect } from '../testing/client.ts'
import { startTestDaemon, type TestDaemon } from '../testing/daemon.ts'
import { smallTar } from '../testing/tar.ts'
import { until } from '../testing/until.ts'

/** One of each kind that has a name. */
interface Names {
  readonly sandbox: string
  readonly exec: string
  readonly image: string
  readonly snapshot: string
  readonly snapshotName: string
  readonly template: string
  readonly templateName: string
  readonly run: string
  readonly episode: string
  readonly queue: string
  readonly task: string
  readonly blob: string
  readonly key: string
}

interface Asked {
  readonly path?: string
  readonly json?: unknown
  readonly body?: string | Uint8Array<ArrayBuffer>
}

interface Row {
  /**
   * `unknown`: named, and answered as if it never were · `own`: the stranger’s own is listed, made or changed, and nothing of the
   * project is in the answer · `refused`: forbidden, whatever is named.
   */
  readonly gets: 'unknown' | 'own' | 'refused'
  /** Each way to name something in it. */
  readonly ask: (names: Names) => Asked | readonly Asked[]
}

const unknown = (ask: Row['ask']): Row => ({ gets: 'unknown', ask })
const own = (ask: Row['ask'] = () => ({})): Row => ({ gets: 'own', ask })
const path = { path: '/etc/motd' }
const file = '?path=/etc/motd'

const sandboxed = (suffix: string, more: Asked = {}): Row =>
  unknown(({ sandbox }) => ({ path: `/v1/sandboxes/${sandbox}${suffix}`, ...more }))
const ofRun = (suffix: string, more: Asked = {}): Row =>
  unknown(({ run }) => ({ path: `/v1/runs/${run}${suffix}`, ...more }))
const ofQueue = (suffix: string, more: Asked = {}): Row =>
  unknown(({ queue }) => ({ path: `/v1/queues/${queue}${suffix}`, ...more }))

const froms = ({ image, snapshot, template, snapshotName, templateName }: Names) => [
  ...[image, snapshot, template, snapshotName, templateName],
  ...[`snapshot:${snapshotName}`, `template:${templateName}`],
]
const runOf = (name: string, from: string) => ({ name, kind: 'worker', from, concurrency: 1 })

const ROWS: Readonly<Record<Exclude<RouteName, 'connect'>, Row>> = {
  health: own(),
  metrics: own(),
  createSandbox: unknown((names) => froms(names).map((from) => ({ json: { from } }))),
  listSandboxes: own(),
  getSandbox: sandboxed(''),
  stopSandbox: sandboxed(''),
  pauseSandbox: sandboxed('/pause'),
  resumeSandbox: sandboxed('/resume'),
  runExec: sandboxed('/exec', { json: { command: ['true'] } }),
  listExecs: sandboxed('/execs'),
  killExec: unknown(({ sandbox, exec }) => ({
    path: `/v1/sandboxes/${sandbox}/execs/${exec}/kill`,
    json: {},
  })),
  resizeExec: unknown(({ sandbox, exec }) => ({
    path: `/v1/sandboxes/${sandbox}/execs/${exec}/resize`,
    json: { rows: 24, columns: 80 },
  })),
  getNetwork: sandboxed('/network'),
  setNetwork: sandboxed('/network', { json: { policy: 'none' } }),
  readNetworkLog: sandboxed('/network/log'),
  setSecret: own(() => ({ path: '/v1/secrets/theirs', json: { value: 'mine' } })),
  listSecrets: own(),
  deleteSecret: unknown(() => ({ path: '/v1/secrets/theirs-alone' })),
  backUp: { gets: 'refused', ask: () => ({}) },
  readLog: unknown(({ sandbox, exec }) => ({
    path: `/v1/sandboxes/${sandbox}/execs/${exec}/output`,
  })),
  readFile: sandboxed(`/files${file}`),
  writeFile: sandboxed(`/files${file}`, { body: 'theirs' }),
  removeFile: sandboxed(`/files${file}`),
  statFile: sandboxed(`/files/stat${file}`),
  listFiles: sandboxed('/files/list?path=/'),
  makeDirectory: sandboxed('/files/directory', { json: path }),
  renameFile: sandboxed('/files/rename', { json: { from: '/etc/motd', to: '/b' } }),
  changeMode: sandboxed('/files/mode', { json: { ...path, mode: 0 } }),
  downloadTree: sandboxed('/tree?path=/'),
  uploadTree: sandboxed('/tree?path=/', { body: '' }),
  listPorts: sandboxed('/ports'),
  signPortUrl: sandboxed('/ports/url', { json: { port: 8000 } }),
  finishFunction: sandboxed('/function', { json: {} }),
  createFileUrl: sandboxed('/files/url', { json: path }),
  readSignedFile: unknown(() => ({ path: '/signed/files/sf_none.none' })),
  writeSignedFile: unknown(() => ({ path: '/signed/files/sf_none.none', body: 'theirs' })),
  buildImage: unknown(({ image, blob, snapshotName }) => [
    { json: { kind: 'tar', blob } },
    { json: { kind: 'id', id: image } },
    { json: { kind: 'id', id: `snapshot:${snapshotName}` } },
    { json: built({ kind: 'id', id: image }, { kind: 'env', env: { A: '1' } }) },
    { json: built({ kind: 'tar', blob }, { kind: 'env', env: { A: '1' } }) },
  ]),
  listImages: own(),
  getImage: unknown(({ image }) => ({ path: `/v1/images/${image}` })),
  removeImage: unknown(({ image }) => ({ path: `/v1/images/${image}` })),
  verifyImage: unknown(({ image }) => ({ path: `/v1/images/${image}/verify` })),
  exportImage: unknown(({ image }) => ({ path: `/v1/images/${image}/export` })),
  pruneImages: { gets: 'refused', ask: () => ({ json: { what: 'all' } }) },
  createSnapshot: sandboxed('/snapshots', { json: { kind: 'filesystem' } }),
  forkSandbox: sandboxed('/fork', { json: { kind: 'filesystem', count: 1 } }),
  listSnapshots: own(({ snapshotName }) => [
    { path: '/v1/snapshots?all=true' },
    { path: `/v1/snapshots?name=${snapshotName}` },
  ]),
  getSnapshot: unknown(({ snapshot, snapshotName }) => [
    { path: `/v1/snapshots/${snapshot}` },
    { path: `/v1/snapshots/${snapshotName}` },
  ]),
  deleteSnapshot: unknown(({ snapshot, snapshotName }) => [
    { path: `/v1/snapshots/${snapshot}?force=true` },
    { path: `/v1/snapshots/${snapshotName}?force=true` },
  ]),
  prepareTemplate: unknown(({ image, blob }) => [
    { json: { source: { kind: 'tar', blob } } },
    { json: { source: { kind: 'id', id: image } } },
  ]),
  listTemplates: own(({ templateName }) => ({ path: `/v1/templates?name=${templateName}` })),
  getTemplate: unknown(({ template, templateName }) => [
    { path: `/v1/templates/${template}` },
    { path: `/v1/templates/${templateName}` },
  ]),
  deleteTemplate: unknown(({ template, templateName }) => [
    { path: `/v1/templates/${template}` },
    { path: `/v1/templates/${templateName}` },
  ]),
  headBlob: unknown(({ blob }) => ({ path: `/v1/blobs/${blob}` })),
  getBlob: unknown(({ blob }) => ({ path: `/v1/blobs/${blob}` })),
  putBlob: own(() => ({ path: `/v1/blobs/${digestOf('theirs')}`, body: 'theirs' })),
  createRun: unknown((names) => froms(names).map((from) => ({ json: runOf('theirs', from) }))),
  listRuns: own(),
  getRun: ofRun(''),
  attachRun: ofRun('/attach', { json: {} }),
  putTasks: ofRun('/tasks', { json: { tasks: [{ key: 'k', json: '1' }] } }),
  closeRun: ofRun('/close'),
  cancelRun: ofRun('/cancel'),
  pauseRun: ofRun('/pause'),
  resumeRun: ofRun('/resume'),
  setPolicyVersion: ofRun('/policy-version', { json: { version: 1 } }),
  deleteRun: ofRun(''),
  getResults: ofRun('/results'),
  getGroups: ofRun('/groups'),
  listEpisodes: ofRun('/episodes'),
  getEpisode: unknown(({ run, episode }) => ({ path: `/v1/runs/${run}/episodes/${episode}` })),
  getReport: ofRun('/report'),
  putQueue: unknown(({ image, blob, queue }) => [
    { path: `/v1/queues/${queue}`, json: queueOf(blob, undefined) },
    { path: `/v1/queues/${queue}`, json: queueOf(digestOf('theirs'), image) },
  ]),
  listQueues: own(),
  getQueue: ofQueue(''),
  deleteQueue: ofQueue(''),
  putQueueTasks: ofQueue('/tasks', { json: { tasks: [{ id: 'task-of-nobody', json: '1' }] } }),
  getQueueResults: ofQueue('/results'),
  getTaskResult: unknown(({ queue, task }) => ({ path: `/v1/queues/${queue}/results/${task}` })),
  listDeadLetters: ofQueue('/dead'),
  replayDeadLetters: ofQueue('/replay', { json: {} }),
  getUsage: own(() => [{ path: '/v1/usage?by=run' }, { path: '/v1/usage?by=project' }]),
  createKey: { gets: 'refused', ask: () => ({ json: { scope: 'read', project: 'default' } }) },
  listKeys: own(),
  // What it asked itself names whatever it named.
  getAudit: own(() => ({ path: '/v1/audit?key=local' })),
  revokeKey: unknown(({ key }) => ({ path: `/v1/keys/${key}` })),
}

const OPS: Readonly<Record<ConnectOp, (names: Names) => ConnectRequest>> = {
  'exec.start': ({ sandbox }) => ({
    ...{ op: 'exec.start', sandbox, command: ['true'], stdin: false, mode: 'buffered' },
    exec: newId('exec'),
  }),
  'exec.attach': ({ sandbox, exec }) => ({
    ...{ op: 'exec.attach', sandbox, exec, stdoutFrom: 0, stderrFrom: 0 },
  }),
  'file.read': ({ sandbox }) => ({ op: 'file.read', sandbox, ...path }),
  'file.write': ({ sandbox }) => ({
    ...{ op: 'file.write', sandbox, ...path, parents: true, append: false, exclusive: false },
  }),
  'file.list': ({ sandbox }) => ({ op: 'file.list', sandbox, path: '/' }),
  'tar.out': ({ sandbox }) => ({ op: 'tar.out', sandbox, path: '/' }),
  'tar.in': ({ sandbox }) => ({ op: 'tar.in', sandbox, path: '/' }),
  'port.open': ({ sandbox }) => ({ op: 'port.open', sandbox, port: 8000 }),
  'port.wait': ({ sandbox }) => ({ op: 'port.wait', sandbox, port: 8000, timeout: 100 }),
  worker: ({ run }) => ({ op: 'worker', run, worker: newId('worker'), slots: 1, held: [] }),
}

/** What the image of a test daemon is made of. */
const TAR = smallTar('etc/motd', 'hello\n')

const NOBODY: Names = {
  sandbox: newId('sandbox'),
  exec: newId('exec'),
  image: newId('image'),
  snapshot: newId('snapshot'),
  snapshotName: 'no-snapshot-name',
  template: newId('template'),
  templateName: 'no-template-name',
  run: 'no-run-name',
  episode: 'no-episode',
  queue: 'no-queue-name',
  task: 'no-task',
  blob: digestOf('nothing'),
  key: newId('key'),
}

let at: TestDaemon
let theirs: Names
let stranger = ''

beforeAll(async () => {
  at = await startTestDaemon()
  theirs = await furnish(at)
  const json = { scope: 'admin', project: 'stranger' }
  stranger = keyCreated.parse((await at.ask('POST', '/v1/keys', { json })).json).key
})
afterAll(() => at[Symbol.asyncDispose]())

test('each route has a row, and each request of the WebSocket', () => {
  expect([...Object.keys(ROWS), 'connect'].sort()).toEqual(Object.keys(ROUTES).sort())
  expect(Object.keys(OPS).sort()).toEqual([...CONNECT_OPS].sort())
  for (const name of Object.values(theirs)) expect(name).not.toBe('')
})

describe.each(Object.entries(ROWS) as [keyof typeof ROWS, Row][])('%s', (name, { gets, ask }) => {
  const asksOf = (names: Names) => [ask(names)].flat() as Asked[]
  test(`to a stranger: ${gets}`, async () => {
    const nobodys = asksOf(NOBODY)
    for (const [index, asked] of asksOf(theirs).entries()) {
      const reply = await get(name, asked)
      if (gets === 'refused') expect(reply).toMatchObject({ code: 'forbidden' })
      if (gets === 'own') {
        expect(reply.status).toBeLessThan(300)
        for (const secret of Object.values(theirs)) expect(reply.text).not.toContain(secret)
      }
      if (gets !== 'unknown') continue
      // The log of a build tells its failure in its last line.
      const isFailure = reply.status >= 400 || reply.text.includes('"kind":"error"')
      expect(isFailure, reply.text).toBe(true)
      const other = await get(name, nobodys[index] ?? {})
      expect(masked(reply, theirs)).toEqual(masked(other, NOBODY))
    }
  })
})

test.each(CONNECT_OPS)('on the WebSocket %s finds nothing of another project', async (op) => {
  using client = await connect(at, { authorization: `Bearer ${stranger}` })
  const failed = async (names: Names) => {
    const { code, message } = await client.open(OPS[op](names)).done.then(
      () => ({ code: 'ok', message: '' }),
      (error) => error,
    )
    return { code, message: maskedText(message, names) }
  }
  const reply = await failed(theirs)
  expect(reply.code).toMatch(/^(sandbox|run)_unknown$/)
  expect(reply).toEqual(await failed(NOBODY))
})

test('names of one project are free in another, and what is made there is apart', async () => {
  const tar = { path: `/v1/blobs/${theirs.blob}`, body: TAR }
  expect((await get('putBlob', tar)).status).toBe(201)
  const image = await get('buildImage', { json: { kind: 'tar', blob: theirs.blob } })
  expect(image.text).toContain(theirs.image)
  const made = await get('createRun', { json: runOf(theirs.run, theirs.image) })
  expect(made.status).toBe(200)
  expect(
    (await get('putQueue', { path: `/v1/queues/${theirs.queue}`, json: { kind: 'tasks' } })).status,
  ).toBeLessThan(300)
  expect((await at.ask('GET', `/v1/runs/${theirs.run}/episodes`)).text).toContain(theirs.episode)
  expect(
    (await get('listEpisodes', { path: `/v1/runs/${theirs.run}/episodes` })).text,
  ).not.toContain(theirs.episode)
  // It gives up its own right to the image; the files stay for who has it too.
  const removed = await get('removeImage', { path: `/v1/images/${theirs.image}` })
  expect(removed.json).toEqual({ removed: [theirs.image], freedBytes: 0 })
  expect((await get('getImage', { path: `/v1/images/${theirs.image}` })).code).toBe('image_unknown')
})

test('nothing of what a stranger asked has changed anything of the project', async () => {
  const { sandbox, image, snapshot, template, run, queue, blob, key } = theirs
  for (const path of [
    ...[`/v1/sandboxes/${sandbox}`, `/v1/images/${image}`, `/v1/snapshots/${snapshot}`],
    ...[`/v1/templates/${template}`, `/v1/runs/${run}`, `/v1/queues/${queue}`],
    `/v1/blobs/${blob}`,
  ]) {
    expect((await at.ask('GET', path)).status, path).toBe(200)
  }
  expect((await at.ask('GET', '/v1/keys')).text).toContain(key)
  expect((await at.ask('GET', `/v1/sandboxes/${sandbox}`)).json).toMatchObject({ state: 'running' })
  expect((await at.ask('GET', `/v1/sandboxes/${sandbox}/files${file}`)).text).toBe('hello\n')
})

function get(name: RouteName, { path = ROUTES[name].path, ...more }: Asked) {
  return at.ask(ROUTES[name].method, path, { key: stranger, ...more })
}

function masked({ status, text }: { status: number; text: string }, names: Names) {
  return { status, text: maskedText(text, names) }
}

function maskedText(text: string, names: Names): string {
  // Longer ones first: one name may be a part of another.
  const known = Object.entries(names).sort(([, a], [, b]) => b.length - a.length)
  return known.reduce((left, [kind, name]) => left.replaceAll(name, `<${kind}>`), text)
}

function digestOf(text: string | Uint8Array): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`
}

function built(base: object, step: object) {
  return { kind: 'built', base, steps: [step] }
}

function queueOf(bundle: string, from: string | undefined) {
  const spec = { bundle, export: 'f', label: 'f', ...(from ? { from } : {}) }
  return { kind: 'tasks', function: spec }
}

/** One of each, of the project `default`. */
async function furnish(daemon: TestDaemon): Promise<Names> {
  const make = async (method: string, path: string, json: object) => {
    const reply = await daemon.ask(method, path, { json })
    if (reply.status >= 300) throw new Error(`${path}: ${reply.text}`)
    return reply
  }
  const image = await daemon.image()
  const { id: sandbox } = await daemon.sandbox({ tags: { of: 'theirs' } })
  daemon.exec(sandbox, ['sleep', '1000']).catch(() => {})
  await daemon.ask('PUT', `/v1/sandboxes/${sandbox}/files${file}`, { body: 'hello\n' })
  const runs = async () => (await daemon.ask('GET', `/v1/sandboxes/${sandbox}/execs`)).text
  await until(async () => (await runs()).includes('ex_'))
  const named = { snapshotName: 'their-snapshot-name', templateName: 'their-template-name' }
  const snapshot = await make('POST', `/v1/sandboxes/${sandbox}/snapshots`, {
    ...{ kind: 'filesystem', name: named.snapshotName },
  })
  const template = await make('POST', '/v1/templates', {
    ...{ source: { kind: 'id', id: image }, name: named.templateName },
  })
  const [run, episode, queue] = ['their-run-name', 'their-episode', 'their-queue-name']
  await make('POST', '/v1/runs', runOf(run, image))
  await make('POST', `/v1/runs/${run}/tasks`, { tasks: [{ key: episode, json: '1' }] })
  await make('PUT', `/v1/queues/${queue}`, { kind: 'tasks' })
  const tasks = await make('POST', `/v1/queues/${queue}/tasks`, {
    tasks: [{ id: 'their-task', json: '1' }],
  })
  const key = await make('POST', '/v1/keys', { scope: 'read' })
  return {
    ...{ sandbox, image, run, episode, queue, blob: digestOf(TAR), ...named },
    exec: /ex_[a-z0-9]{20}/.exec(await runs())?.[0] ?? '',
    snapshot: (snapshot.json as { id: string }).id,
    template: /tp_[a-z0-9]{20}/.exec(template.text)?.[0] ?? '',
    task: (tasks.json as { tasks: { task: string }[] }).tasks[0]?.task ?? '',
    key: (key.json as { id: string }).id,
  }
}
