import {
  keyCreated,
  newId,
  ROUTES,
  type Route,
  type RouteName,
  SCOPES,
  type Scope,
} from '@sandlot/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connect } from '../testing/client.ts'
import { startTestDaemon, type TestDaemon } from '../testing/daemon.ts'

/** The least scope that each route needs, `none` for those without a key, `signed` for those whose right is in their address. A new route has no row: that neither compiles nor passes. */
const NEEDS: Readonly<Record<RouteName, Scope | 'none' | 'signed'>> = {
  ...{ health: 'none', metrics: 'none' },
  ...{ createSandbox: 'run', listSandboxes: 'read', getSandbox: 'read', stopSandbox: 'run' },
  ...{ pauseSandbox: 'run', resumeSandbox: 'run', forkSandbox: 'run' },
  ...{ listPorts: 'read', signPortUrl: 'run' },
  ...{ runExec: 'run', listExecs: 'read', killExec: 'run', readLog: 'read' },
  ...{ readFile: 'read', writeFile: 'run', removeFile: 'run', statFile: 'read' },
  ...{ listFiles: 'read', makeDirectory: 'run', renameFile: 'run', changeMode: 'run' },
  ...{ downloadTree: 'read', uploadTree: 'run', finishFunction: 'run' },
  ...{ buildImage: 'run', listImages: 'read', getImage: 'read', removeImage: 'admin' },
  ...{ verifyImage: 'run', exportImage: 'read', pruneImages: 'admin' },
  ...{ createSnapshot: 'run', listSnapshots: 'read', getSnapshot: 'read', deleteSnapshot: 'admin' },
  ...{
    prepareTemplate: 'run',
    listTemplates: 'read',
    getTemplate: 'read',
    deleteTemplate: 'admin',
  },
  ...{ headBlob: 'read', getBlob: 'read', putBlob: 'run' },
  ...{ createRun: 'run', listRuns: 'read', getRun: 'read', attachRun: 'run', putTasks: 'run' },
  ...{ closeRun: 'run', cancelRun: 'run', pauseRun: 'run', resumeRun: 'run', deleteRun: 'run' },
  ...{ setPolicyVersion: 'run', getResults: 'read', getGroups: 'read', listEpisodes: 'read' },
  ...{ getEpisode: 'read', getReport: 'read' },
  ...{ putQueue: 'run', listQueues: 'read', getQueue: 'read', deleteQueue: 'run' },
  ...{ putQueueTasks: 'run', getQueueResults: 'read', getTaskResult: 'read' },
  ...{ listDeadLetters: 'read', replayDeadLetters: 'run' },
  ...{
    getUsage: 'read',
    createKey: 'admin',
    listKeys: 'admin',
    revokeKey: 'admin',
    getAudit: 'admin',
  },
  ...{ createFileUrl: 'run', readSignedFile: 'signed', writeSignedFile: 'signed' },
  ...{ backUp: 'admin', resizeExec: 'run' },
  ...{ getNetwork: 'read', setNetwork: 'run', readNetworkLog: 'read' },
  ...{ setSecret: 'admin', listSecrets: 'read', deleteSecret: 'admin' },
  connect: 'run',
}

let at: TestDaemon
const keys = new Map<Scope, string>()
beforeAll(async () => {
  at = await startTestDaemon()
  for (const scope of SCOPES) {
    const json = { scope, project: 'scoped' }
    keys.set(scope, keyCreated.parse((await at.ask('POST', '/v1/keys', { json })).json).key)
  }
})
afterAll(() => at[Symbol.asyncDispose]())

test('each route has a row', () => {
  expect(Object.keys(NEEDS).sort()).toEqual(Object.keys(ROUTES).sort())
})

test.each(Object.entries(NEEDS) as [RouteName, Scope | 'none' | 'signed'][])(
  '%s needs %s',
  async (name, needs) => {
    const { method, path, body }: Route = ROUTES[name]
    const target = path.replace(':id', newId('sandbox')).replace(/:[a-z]+/g, 'nobody')
    const ask = (key: string | null) =>
      at.ask(method, target, { key, ...(body === undefined ? {} : { body: '{}' }) })
    const anonymous = await ask(null)
    if (needs === 'none') return expect(anonymous.status).toBe(200)
    if (needs === 'signed') return expect(anonymous.code).toBe('token_invalid')
    expect(anonymous.status).toBe(401)
    for (const [scope, key] of keys) {
      const { status, text } = await ask(key)
      const isRefused = SCOPES.indexOf(scope) < SCOPES.indexOf(needs)
      expect(
        status === 403 && (method === 'HEAD' || text.includes('needs a key of scope')),
        `${scope}: ${text}`,
      ).toBe(isRefused)
    }
  },
)

test('the WebSocket runs commands, so it needs what that needs', async () => {
  await expect(connect(at, { authorization: `Bearer ${keys.get('read')}` })).rejects.toThrow('403')
  using _ = await connect(at, { authorization: `Bearer ${keys.get('run')}` })
})
