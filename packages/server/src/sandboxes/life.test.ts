import { newId } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { startTestDaemon } from '../testing/daemon.ts'
import { until } from '../testing/until.ts'

test('a sandbox is made, listed by tag, looked at, stopped, and still tells how it ended', async () => {
  await using at = await startTestDaemon()
  const made = await at.sandbox({ tags: { team: 'a' }, env: { X: '1' }, keepWarm: '1m' })
  await at.sandbox({ tags: { team: 'b' } })
  expect(made).toMatchObject({
    state: 'running',
    owner: 'client',
    node: 'local',
    tags: { team: 'a' },
  })
  expect(made.env).toMatchObject({ X: '1', PATH: expect.any(String) })
  expect(made.endpoint).toBe(at.url)

  const list = async (query: string) =>
    (await at.ask('GET', `/v1/sandboxes?${query}`)).json as {
      items: { id: string }[]
      next: string
    }
  expect((await list('tag=team=a')).items.map(({ id }) => id)).toEqual([made.id])
  expect((await list('tag=team')).items.length).toBe(2)
  const page = await list('limit=1')
  expect(page.items.map(({ id }) => id)).toEqual([made.id])
  expect((await list(`limit=1&after=${page.next}`)).items.length).toBe(1)

  expect((await at.ask('GET', `/v1/sandboxes/${made.id}`)).json).toMatchObject({
    state: 'running',
    usage: { memoryBytes: expect.any(Number) },
  })
  const stopped = await at.ask('DELETE', `/v1/sandboxes/${made.id}`)
  expect(stopped.json).toMatchObject({
    state: 'stopped',
    ending: { kind: 'stopped', detail: 'stopped by its client' },
  })
  expect((await at.ask('DELETE', `/v1/sandboxes/${made.id}`)).json).toEqual(stopped.json)
  expect((await at.ask('GET', `/v1/sandboxes/${made.id}`)).json).toEqual(stopped.json)
  expect((await list('state=stopped')).items.map(({ id }) => id)).toEqual([made.id])
  expect(await at.exec(made.id, 'true')).toMatchObject({ status: 410, code: 'sandbox_gone' })
})

test('a sandbox shows what it may reach, also when it has ended', async () => {
  await using at = await startTestDaemon()
  const policy = { allow: ['api.example.org'], packages: true }
  const network = { phase: 'agent', allows: { setup: 'none', agent: policy, grade: 'none' } }
  const made = await at.sandbox({ network: policy })
  expect(made.network).toEqual(network)
  expect((await at.ask('GET', `/v1/sandboxes/${made.id}`)).json).toMatchObject({ network })
  expect((await at.ask('DELETE', `/v1/sandboxes/${made.id}`)).json).toMatchObject({ network })
  expect((await at.sandbox()).network.allows.agent).toBe('none')
})

test('a sandbox that dies alone tells why, to whoever asks for it', async () => {
  await using at = await startTestDaemon({ script: () => ({ hangs: true }) })
  const [oom, lost] = [await at.sandbox(), await at.sandbox()]
  const running = at.exec(oom.id, 'sleep')
  await until(async () => {
    const listed = await at.ask('GET', `/v1/sandboxes/${oom.id}/execs`)
    return (listed.json as { items: unknown[] }).items.length === 1
  })
  at.driver.kill(oom.id, 'oom_limit', 'its own limit')
  const reply = await running
  expect(reply).toMatchObject({ status: 410, code: 'sandbox_gone' })
  expect(reply.json).toMatchObject({ error: { details: { ending: { kind: 'oom_limit' } } } })

  at.driver.kill(lost.id, 'lost', 'killed from outside')
  expect(await at.exec(lost.id, 'true')).toMatchObject({ status: 503, code: 'sandbox_lost' })
  expect((await at.ask('GET', `/v1/sandboxes/${lost.id}`)).json).toMatchObject({
    ending: { kind: 'lost', detail: 'killed from outside' },
  })
  await until(() => at.driver.machine.all().every(({ dressed }) => !dressed))
})

test('a sandbox ends when nobody used it for its time, and not before', async () => {
  const over = Promise.withResolvers<void>()
  await using at = await startTestDaemon({
    script: async () => {
      await over.promise
      return {}
    },
  })
  const used = await at.sandbox({ keepWarm: 4_000 })
  const running = at.exec(used.id, 'true')
  // Its time is over after that of the one that is used would be.
  const idle = await at.sandbox({ keepWarm: 4_000 })
  const stateOf = async (id: string) =>
    ((await at.ask('GET', `/v1/sandboxes/${id}`)).json as { state: string }).state
  await until(async () => (await stateOf(idle.id)) === 'stopped')
  expect((await at.ask('GET', `/v1/sandboxes/${idle.id}`)).json).toMatchObject({
    ending: { kind: 'expired' },
  })
  over.resolve()
  expect((await running).status).toBe(200)
  await until(async () => (await stateOf(used.id)) === 'stopped')
})

test('a lifetime ends it, used or not', async () => {
  await using at = await startTestDaemon({ script: () => ({ hangs: true }) })
  const { id } = await at.sandbox({ lifetime: 1_000 })
  expect(await at.exec(id, 'sleep')).toMatchObject({ status: 410, code: 'sandbox_gone' })
  expect((await at.ask('GET', `/v1/sandboxes/${id}`)).json).toMatchObject({
    ending: { kind: 'expired' },
  })
})

test('room is given by request; what never fits is the caller’s mistake', async () => {
  await using at = await startTestDaemon({ daemon: { cpus: 1, memoryBytes: 2 ** 30 } })
  const from = await at.image()
  const ask = (resources: unknown) => at.ask('POST', '/v1/sandboxes', { json: { from, resources } })
  expect((await ask({ cpu: 0.6 })).status).toBe(201)
  expect(await ask({ cpu: 0.6 })).toMatchObject({ status: 503, code: 'capacity' })
  expect((await ask({ cpu: { request: 0.3, limit: 4 } })).status).toBe(201)
  expect(await ask({ cpu: 2 })).toMatchObject({ status: 400, code: 'invalid_request' })
  expect(await ask({ memory: '2GiB' })).toMatchObject({ status: 400 })
  expect(await ask({ memory: '1MiB' })).toMatchObject({ status: 400 })
})

test('blanks are taken first; a cold start is the second try', async () => {
  await using at = await startTestDaemon({ daemon: { poolTarget: 1 } })
  await at.image()
  await until(() => at.driver.machine.size === 1)
  const blank = at.driver.machine.all()[0]?.hostId
  await at.sandbox()
  expect(at.driver.machine.all().find(({ hostId }) => hostId === blank)?.dressed).toBe(true)
  const metrics = (await at.ask('GET', '/metrics')).text
  expect(metrics).toContain('sandlot_sandbox_create_seconds_count{origin="pool"} 1')
})

test('a client that leaves before its sandbox is there leaves none behind', async () => {
  const started = Promise.withResolvers<void>()
  await using at = await startTestDaemon({
    daemon: { poolTarget: 0 },
    onStart: () => {
      started.resolve()
      return 'hang'
    },
  })
  const from = await at.image()
  const leave = new AbortController()
  const asked = at.ask('POST', '/v1/sandboxes', { json: { from }, signal: leave.signal })
  await started.promise
  leave.abort()
  await expect(asked).rejects.toThrow()
  await until(async () => {
    const listed = await at.ask('GET', '/v1/sandboxes')
    return (listed.json as { items: unknown[] }).items.length === 0
  })
  expect(at.driver.machine.size).toBe(0)
})

test('what is not there is said so', async () => {
  await using at = await startTestDaemon()
  const image = await at.ask('POST', '/v1/sandboxes', { json: { from: newId('image') } })
  expect(image).toMatchObject({ status: 404, code: 'image_unknown' })
  const unknown = await at.ask('GET', `/v1/sandboxes/${newId('sandbox')}`)
  expect(unknown).toMatchObject({ status: 404, code: 'sandbox_unknown' })
})
