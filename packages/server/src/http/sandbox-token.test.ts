import { CONNECT_OPS, type ConnectRequest, ROUTES, type RouteName } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { connect } from '../testing/client.ts'
import { startTestDaemon, type TestDaemon } from '../testing/daemon.ts'
import type { KeyRing } from './keys.ts'
import { Rights } from './rights.ts'
import { callerOfToken, requireOpReach, requireReach, sandboxToken } from './sandbox-token.ts'
import { Signer } from './signed.ts'

/** All that a token of one sandbox reaches; what is not here is refused, whatever is added later. */
const REACHED: readonly RouteName[] = [
  ...(['runExec', 'listExecs', 'killExec', 'resizeExec', 'readLog'] as const),
  ...(['readFile', 'writeFile', 'removeFile', 'statFile', 'listFiles'] as const),
  ...(['makeDirectory', 'renameFile', 'changeMode', 'downloadTree', 'uploadTree'] as const),
  'listPorts',
  'connect',
]
const REACHED_OPS =
  'exec.start exec.attach file.read file.write file.list tar.out tar.in port.open port.wait'.split(
    ' ',
  )

const OWN = `sb_${'a'.repeat(20)}`
const OTHER = `sb_${'b'.repeat(20)}`
const signer = new Signer('s'.repeat(32), () => 0)
const token = sandboxToken(signer, { key: 'k', project: 'p', sandbox: OWN, expiresAtMs: 1_000 })
const caller = callerOfToken(signer, token)

test('a sandbox token reaches commands and files of its sandbox, and nothing else of the API', () => {
  expect(caller).toMatchObject({ key: 'k', project: 'p', scope: 'run', sandbox: { id: OWN } })
  for (const name of Object.keys(ROUTES) as RouteName[]) {
    const reach = (id: string | undefined) => () => requireReach(caller, name, id)
    if (!REACHED.includes(name)) {
      expect(reach(OWN), name).toThrow(`not ${name}`)
    } else {
      expect(reach(OWN), name).not.toThrow()
      if (name !== 'connect') expect(reach(OTHER), name).toThrow('is not the sandbox of this token')
    }
  }
  for (const op of CONNECT_OPS) {
    const reach = (sandbox: string) => () =>
      requireOpReach(caller, { op, sandbox } as ConnectRequest)
    if (!REACHED_OPS.includes(op)) expect(reach(OWN), op).toThrow(`not ${op}`)
    else expect(reach(OWN), op).not.toThrow()
    if (REACHED_OPS.includes(op)) expect(reach(OTHER), op).toThrow('is not the sandbox')
  }
})

test('over HTTP and the WebSocket it drives its sandbox, and is told what it may not', async () => {
  await using at = await startTestDaemon()
  const mine = await at.sandbox()
  const other = await at.sandbox()
  const key = await tokenOf(at, mine.id, 60_000)
  const run = { json: { command: ['true'] }, key }
  expect((await at.ask('POST', `/v1/sandboxes/${mine.id}/exec`, run)).status).toBe(200)
  expect(await at.ask('POST', `/v1/sandboxes/${other.id}/exec`, run)).toMatchObject({
    code: 'sandbox_unknown',
  })
  expect(await at.ask('GET', '/v1/sandboxes', { key })).toMatchObject({ code: 'forbidden' })
  expect(await at.ask('DELETE', `/v1/sandboxes/${mine.id}`, { key })).toMatchObject({
    code: 'forbidden',
  })
  using client = await connect(at, { authorization: `Bearer ${key}` })
  const list = (sandbox: string) => client.open({ op: 'file.list', sandbox, path: '/' }).done
  await expect(list(mine.id)).resolves.toBeDefined()
  await expect(list(other.id)).rejects.toMatchObject({ code: 'sandbox_unknown' })
  const worker = {
    op: 'worker',
    run: 'r',
    worker: 'w',
    slots: 1,
    held: [],
  } satisfies ConnectRequest
  await expect(client.open(worker).done).rejects.toMatchObject({ code: 'forbidden' })
})

test('it ends at its time, and open connections with it', async () => {
  await using at = await startTestDaemon()
  const { id } = await at.sandbox()
  // Time enough to connect with it.
  const key = await tokenOf(at, id, 6_000)
  using client = await connect(at, { authorization: `Bearer ${key}` })
  const closed = new Promise((resolve) => client.socket.once('close', (code) => resolve(code)))
  expect(await closed).toBe(1008)
  expect(await at.ask('GET', `/v1/sandboxes/${id}/execs`, { key })).toMatchObject({
    status: 401,
    code: 'token_expired',
  })
  const forged = await at.ask('GET', `/v1/sandboxes/${id}/execs`, { key: `${key}x` })
  expect(forged).toMatchObject({ status: 401, code: 'token_invalid' })
})

test('it ends with its lease, and with the key in whose name it was given', async () => {
  await using at = await startTestDaemon()
  const alive = new Set(['ls_1'])
  const keys = { check: () => {} } as unknown as KeyRing
  const isLeaseAlive = (lease: string) => alive.has(lease)
  const rights = new Rights({ keys, signer, now: () => 0, isLeaseAlive })
  const leased = sandboxToken(signer, {
    ...{ key: 'k', project: 'p', sandbox: OWN, lease: 'ls_1' },
    expiresAtMs: 1_000,
  })
  expect(rights.authenticate(`Bearer ${leased}`).sandbox?.lease).toBe('ls_1')
  alive.clear()
  expect(() => rights.authenticate(`Bearer ${leased}`)).toThrow('lease of this sandbox token')

  const { id } = await at.sandbox()
  const key = await tokenOf(at, id, 60_000, 'ky_unknown')
  expect(await at.ask('GET', `/v1/sandboxes/${id}/execs`, { key })).toMatchObject({
    code: 'unauthorized',
  })
})

async function tokenOf(at: TestDaemon, sandbox: string, lifeMs: number, key = 'local') {
  const own = await Signer.open(at.directories.dataDirectory, Date.now)
  return sandboxToken(own, { key, project: 'default', sandbox, expiresAtMs: Date.now() + lifeMs })
}
