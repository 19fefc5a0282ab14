import { createHash } from 'node:crypto'
import { completeResources, newId } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { createManualClock } from '../coordinator/simulated/clock.ts'
import { SERVER_LIMITS } from '../limits.ts'
import { GatedDriver } from '../testing/gated-driver.ts'
import { openNode } from '../testing/node.ts'
import { until } from '../testing/until.ts'
import { Node } from './node.ts'
import type { SandboxEnded } from './port.ts'

test('asked again, an acquire gives the same sandbox; a release the same ending', async () => {
  await using at = await openNode()
  const request = at.request()
  const [first, second] = await Promise.all([at.node.acquire(request), at.node.acquire(request)])
  expect(second).toEqual(first)
  expect(at.driver.machine.size).toBe(1)
  const release = { sandbox: request.sandbox, reason: 'over' }
  const ended = await at.node.release(release)
  expect(ended).toMatchObject({ kind: 'stopped', asked: true, detail: 'over', owner: 'run/key/1' })
  expect(await at.node.release(release)).toEqual(ended)
  expect(await at.node.find(request.sandbox)).toEqual(ended)
  await expect(at.node.acquire(request)).rejects.toMatchObject({ code: 'sandbox_gone' })
  expect(await at.node.list()).toEqual([])
  expect(await at.node.release({ sandbox: newId('sandbox'), reason: 'never was' })).toMatchObject({
    kind: 'stopped',
    owner: '',
  })
})

test('the time that it takes to come up is none in which nobody used it', async () => {
  const clock = createManualClock()
  const driver = new GatedDriver()
  await using at = await openNode({ node: { clock, driver } })
  const open = driver.closeGate('create')
  const creating = at.node.acquire(at.request({ keepWarmMs: 2_000 }))
  await until(() => driver.arrived === 1)
  clock.advance(3_000)
  open()
  const { sandbox } = await creating
  const entry = at.node.sandboxes.entries.get(sandbox)
  expect(entry?.pastTime(clock.now() + 1_999)).toBeUndefined()
  expect(entry?.pastTime(clock.now() + 2_000)).toContain('nobody used it')
})

test('an older owner is refused', async () => {
  await using at = await openNode()
  const request = at.request({ epoch: 2 })
  await at.node.acquire(request)
  const { sandbox } = request
  const older = at.node.release({ sandbox, epoch: 1, reason: 'late' })
  await expect(older).rejects.toMatchObject({ code: 'lease_lost' })
  await expect(at.node.acquire({ ...request, epoch: 1 })).rejects.toMatchObject({
    code: 'lease_lost',
  })
  expect((await at.node.release({ sandbox, epoch: 2, reason: 'over' })).asked).toBe(true)
})

test('a release ends the creation under way, or the wait for room', async () => {
  const starting = Promise.withResolvers<void>()
  await using at = await openNode({
    onStart: () => {
      starting.resolve()
      return 'hang'
    },
    node: { room: { cpus: 1, memoryBytes: 2 ** 30, sandboxes: 1 } },
  })
  const first = at.request()
  const second = at.request({ waitMs: 60_000 })
  const creating = at.node.acquire(first)
  await starting.promise
  const waiting = at.node.acquire(second)
  await until(() => at.node.room.waiting === 1)
  for (const [asked, { sandbox }] of [
    [waiting, second],
    [creating, first],
  ] as const) {
    const ended = at.node.release({ sandbox, reason: 'not wanted' })
    await expect(asked).rejects.toMatchObject({ code: 'sandbox_gone' })
    expect(await ended).toMatchObject({ kind: 'stopped', asked: true })
  }
  expect(at.driver.machine.size).toBe(0)
  expect(at.node.room.used.sandboxes).toBe(0)
})

test('room that is given back goes to who waits, in order', async () => {
  await using at = await openNode({
    node: { room: { cpus: 1, memoryBytes: 2 ** 30, sandboxes: 1 } },
  })
  const [a, b, c] = [at.request(), at.request({ waitMs: 60_000 }), at.request({ waitMs: 60_000 })]
  await at.node.acquire(a)
  await expect(at.node.acquire(at.request())).rejects.toMatchObject({ code: 'capacity' })
  const order: string[] = []
  const waiting: Promise<void>[] = []
  for (const request of [b, c]) {
    waiting.push(
      at.node.acquire(request).then(async ({ sandbox }) => {
        order.push(sandbox)
        await at.node.release({ sandbox, reason: 'over' })
      }),
    )
    // What comes before the wait for room may take longer for one than for the other.
    await until(() => at.node.room.waiting === waiting.length)
  }
  await at.node.release({ sandbox: a.sandbox, reason: 'over' })
  await Promise.all(waiting)
  expect(order).toEqual([b.sandbox, c.sandbox])
  const resources = completeResources({ cpu: { request: 0.25, limit: 1 } })
  expect(await at.node.capacity(resources)).toMatchObject({ sandboxes: 1, free: 1, creating: 4 })
})

test('the time to start a sandbox begins with its turn; until then it waits as for room', async () => {
  const driver = new GatedDriver()
  await using at = await openNode({ node: { driver, creationsMax: 1 } })
  const open = driver.closeGate('create')
  const creating = at.node.acquire(at.request())
  await until(() => driver.arrived === 1)
  const patient = at.node.acquire(at.request({ waitMs: 60_000 }))
  await until(() => at.node.room.used.sandboxes === 2)
  const hurried = at.request({ waitMs: 20 })
  await expect(at.node.acquire(hurried)).rejects.toMatchObject({ code: 'capacity' })
  expect(at.node.room.used.sandboxes).toBe(2)
  open()
  await Promise.all([creating, patient])
  expect((await at.node.acquire(hurried)).state).toBe('running')
})

test('a creation that failed leaves nothing and may be asked for again', async () => {
  let fail = true
  await using at = await openNode({ onStart: () => (fail ? 'fail' : undefined) })
  const request = at.request()
  await expect(at.node.acquire(request)).rejects.toMatchObject({ code: 'create_failed' })
  expect(await at.node.find(request.sandbox)).toBeUndefined()
  expect((await at.engine.kv.list('sandbox/')).entries).toEqual([])
  fail = false
  expect((await at.node.acquire(request)).state).toBe('running')
  expect((await at.engine.kv.list('sandbox/')).entries.length).toBe(1)
})

test('a command runs once for its id; its end may be asked for again', async () => {
  let runs = 0
  const go = Promise.withResolvers<void>()
  await using at = await openNode({
    script: async ({ stdin }) => {
      runs += 1
      await go.promise
      return { exitCode: 7, stdout: `ran ${Buffer.from(stdin)}` }
    },
  })
  const { sandbox } = await at.node.acquire(at.request())
  const command = { sandbox, exec: newId('exec'), argv: ['x'], stdin: Buffer.from('once') }
  const waits = [at.node.exec(command), at.node.exec(command)]
  const impatient = at.node.exec(command, { timeoutMs: 1 })
  await expect(impatient).rejects.toThrow()
  go.resolve()
  for (const end of await Promise.all([...waits, at.node.exec(command)])) {
    expect(end).toMatchObject({ exitCode: 7, signal: null, timedOut: false })
    expect(Buffer.from(end.stdout).toString()).toBe('ran once')
  }
  expect(runs).toBe(1)
})

test('the grader’s world is opened over main’s files, once; files are brought there', async () => {
  await using at = await openNode({
    script: ({ world, files }) => ({
      stdout: JSON.stringify([
        world,
        Buffer.from(files.bytes('/answer') ?? '').toString(),
        Buffer.from(files.bytes('/tests/hidden') ?? '').toString(),
      ]),
    }),
  })
  const { sandbox } = await at.node.acquire(at.request())
  const blob = async (text: string) =>
    (await at.engine.blobs.put(Buffer.from(text))).digest as string
  const answer = { path: '/answer', blob: await blob('42'), mode: 0o644 }
  await at.node.putFiles({ sandbox, files: [answer] })
  await Promise.all([at.node.openGradeWorld({ sandbox }), at.node.openGradeWorld({ sandbox })])
  const hidden = { path: '/tests/hidden', blob: await blob('secret'), mode: 0o600 }
  await at.node.putFiles({ sandbox, world: 'grade', files: [hidden] })
  const end = await at.node.exec({ sandbox, exec: newId('exec'), world: 'grade', argv: ['x'] })
  expect(JSON.parse(Buffer.from(end.stdout).toString())).toEqual(['grade', '42', 'secret'])
  const main = at.node.exec({ sandbox, exec: newId('exec'), argv: ['x'] })
  await expect(main).rejects.toMatchObject({ code: 'exec_failed' })
  const nothing = `sha256:${createHash('sha256').update('nothing').digest('hex')}`
  const put = at.node.putFiles({ sandbox, world: 'grade', files: [{ ...hidden, blob: nothing }] })
  await expect(put).rejects.toMatchObject({ code: 'blob_unknown' })
})

test('endings that nobody asked for are told, with flags that were met before', async () => {
  await using at = await openNode()
  const stop = new AbortController()
  const told: SandboxEnded[] = []
  const news = at.node.endings({ signal: stop.signal })
  const reading = (async () => {
    for await (const ended of news) told.push(ended)
  })()
  const [dies, released] = [at.request(), at.request()]
  await at.node.acquire(dies)
  await at.node.acquire(released)
  const guest = at.driver.machine.all().find(({ id }) => id === dies.sandbox)?.guest
  guest?.say({ kind: 'flag', world: 'main', flag: 'disk' })
  await until(() => at.node.sandboxes.entries.get(dies.sandbox)?.flags.has('disk') === true)
  await at.node.release({ sandbox: released.sandbox, reason: 'over' })
  at.driver.kill(dies.sandbox, 'oom_limit', 'evidence')
  await until(() => told.length > 0)
  stop.abort()
  await reading
  expect(told).toMatchObject([
    { sandbox: dies.sandbox, kind: 'oom_limit', asked: false, detail: 'evidence', flags: ['disk'] },
  ])
  const late = await at.node.release({ sandbox: dies.sandbox, reason: 'late' })
  expect(late).toEqual(told[0])
})

test('the next node finds what is wanted, and ends what nobody owns', async () => {
  await using at = await openNode()
  const [kept, lost] = [at.request(), at.request()]
  await at.node.acquire(kept)
  await at.node.acquire(lost)
  await at.node.close('keep')
  const gone = at.driver.machine.all().find(({ id }) => id === lost.sandbox)
  at.driver.machine.remove(gone?.hostId ?? '')

  const next = await Node.open(at.given)
  await using stack = new AsyncDisposableStack()
  stack.defer(() => next.close('stop'))
  expect(await next.recover()).toEqual({ adopted: 1, stopped: 0, dead: 1, paused: 0 })
  expect(await next.acquire(kept)).toMatchObject({ sandbox: kept.sandbox, state: 'running' })
  expect(await next.find(lost.sandbox)).toMatchObject({ kind: 'lost', asked: false })
  expect(next.room.used.sandboxes).toBe(1)
  // Nothing was found of it: who asks again never had an answer.
  expect(await next.acquire(lost)).toMatchObject({ sandbox: lost.sandbox, state: 'running' })
  await next.release({ sandbox: lost.sandbox, reason: 'over' })
  await expect(next.acquire(lost)).rejects.toMatchObject({ code: 'sandbox_gone' })
})

test('the pool refills behind what is taken, and rests after failures', async () => {
  let starts = 0
  let fail = false
  const clock = createManualClock()
  await using at = await openNode({
    onStart: () => {
      starts += 1
      return fail ? 'fail' : undefined
    },
    node: { clock, pool: { min: 2, max: 8, idleMs: 600_000 } },
  })
  at.node.pool.fill()
  await until(() => at.node.pool.numbers.ready === 2)
  expect((await at.node.acquire(at.request())).origin).toBe('pool')
  clock.advance(SERVER_LIMITS.refillDelayMs)
  await until(() => at.node.pool.numbers.ready === 2)
  expect(starts).toBe(3)

  fail = true
  const [blank] = at.driver.machine.all().filter(({ dressed }) => !dressed)
  at.driver.kill(blank?.hostId ?? '', 'lost')
  await until(() => at.node.pool.numbers.failures === 1)
  clock.advance(SERVER_LIMITS.refillWaitMs)
  await until(() => at.node.pool.numbers.failures === 2)
  expect(starts).toBe(4)
  // It rests twice as long now, however often it is looked at.
  clock.advance(SERVER_LIMITS.refillWaitMs)
  for (let i = 0; i < 50; i++) {
    at.node.pool.look()
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(starts).toBe(4)
  fail = false
  clock.advance(SERVER_LIMITS.refillWaitMs)
  await until(() => at.node.pool.numbers.ready === 2)
})
