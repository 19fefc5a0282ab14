import { mkdir, readdir, rm } from 'node:fs/promises'
import { systemClock } from '@sandlot/engine'
import { completeResources, newId } from '@sandlot/protocol'
import { FakeDriver, type FakeDriverOptions, FakeMachine } from '@sandlot/runtime'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { openStores } from '../testing/stores.ts'
import { Checkpoints } from './checkpoints.ts'
import type { Entry } from './entry.ts'
import { Node } from './node.ts'
import type { AcquireRequest } from './port.ts'

const MEMORY = { capabilities: { memorySnapshot: true } }
const WAIT = { waitMs: 0, signal: new AbortController().signal }

/** A node with room for one sandbox, on a machine that outlives its daemons. */
async function setup(options: FakeDriverOptions = {}) {
  const stack = new AsyncDisposableStack()
  const { directory, engine, images, image } = await openStores(stack)
  const machine = new FakeMachine()
  const checkpointDirectory = `${directory}/checkpoints`
  const clock = { ...systemClock, ahead: 0, now: () => systemClock.now() + clock.ahead }
  const open = async () => {
    const node = await Node.open({
      node: 'here',
      endpoint: () => 'http://here',
      engine,
      driver: new FakeDriver({ ...MEMORY, ...options, machine }),
      images,
      clock,
      log: pino({ level: 'silent' }),
      room: { cpus: 4, memoryBytes: 2 ** 32, sandboxes: 1 },
      pool: { min: 0, max: 0, idleMs: 600_000 },
      creationsMax: 4,
      checkpoints: new Checkpoints(checkpointDirectory),
    })
    return { node, recovered: await node.recover() }
  }
  const request = (more: Partial<AcquireRequest> = {}): AcquireRequest => ({
    sandbox: newId('sandbox'),
    image: image.id,
    resources: completeResources(undefined),
    project: 'default',
    owner: 'client',
    epoch: 0,
    checkpointable: true,
    ...more,
  })
  const { node } = await open()
  const entry = async (more: Partial<AcquireRequest> = {}): Promise<Entry> =>
    node.sandboxes.acquire(request(more))
  return {
    node,
    open,
    machine,
    clock,
    entry,
    saved: () => readdir(checkpointDirectory),
    checkpointDirectory,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

const left = async (node: Node, id: string) => {
  using lent = await node.sandboxes.lend(id)
  const file = await lent.guest.files.read('main', '/left')
  return Buffer.concat(await Array.fromAsync(file.content)).toString()
}
const leave = async (node: Node, id: string) => {
  using lent = await node.sandboxes.lend(id)
  await lent.guest.files.write('main', '/left', Buffer.from('something'))
}

test('a paused sandbox is nothing but a directory, until it is resumed', async () => {
  await using at = await setup()
  const { node } = at
  const entry = await at.entry()
  await leave(node, entry.id)
  await Promise.all([node.sandboxes.memory.pause(entry), node.sandboxes.memory.pause(entry)])
  expect(entry.view().state).toBe('paused')
  expect(at.machine.size).toBe(0)
  expect(await at.saved()).toEqual([entry.id])
  await expect(node.sandboxes.lend(entry.id)).rejects.toMatchObject({ code: 'sandbox_paused' })
  // Its room is somebody else's meanwhile.
  const other = await at.entry()
  await expect(node.sandboxes.memory.resume(entry, WAIT)).rejects.toMatchObject({
    code: 'capacity',
  })
  expect(entry.view().state).toBe('paused')
  await node.release({ sandbox: other.id, reason: 'over' })
  await node.sandboxes.memory.resume(entry, WAIT)
  await node.sandboxes.memory.resume(entry, WAIT)
  expect(entry.view()).toMatchObject({ state: 'running', origin: 'restored' })
  expect(await left(node, entry.id)).toBe('something')
  expect(await at.saved()).toEqual([])
  expect(await node.release({ sandbox: entry.id, reason: 'over' })).toMatchObject({ asked: true })
  expect(node.room.used.sandboxes).toBe(0)
})

test('one whose memory can’t be restored stays as it is, and nobody is told of another snapshot', async () => {
  await using at = await setup()
  const entry = await at.entry()
  await at.node.sandboxes.memory.pause(entry)
  at.machine.checkpoints.clear()
  await expect(at.node.sandboxes.memory.resume(entry, WAIT)).rejects.toMatchObject({
    code: 'snapshot_incompatible',
    hint: expect.stringContaining('stop it, and create another'),
  })
  expect(entry.view().state).toBe('paused')
  await at.node.release({ sandbox: entry.id, reason: 'over' })
  expect(await at.saved()).toEqual([])
})

test('it survives its daemon, also one that stops all others', async () => {
  await using at = await setup()
  const entry = await at.entry({ tags: { a: 'b' } })
  await leave(at.node, entry.id)
  await at.node.sandboxes.memory.pause(entry)
  await at.node.close('stop')
  const { node, recovered } = await at.open()
  expect(recovered).toEqual({ adopted: 0, stopped: 0, dead: 0, paused: 1 })
  const found = node.sandboxes.entries.get(entry.id) as Entry
  expect(found.view()).toMatchObject({ state: 'paused', tags: { a: 'b' } })
  await node.sandboxes.memory.resume(found, WAIT)
  expect(await left(node, entry.id)).toBe('something')
  await node.close('stop')
})

test('it can be ended as any other', async () => {
  await using at = await setup()
  const entry = await at.entry()
  await at.node.sandboxes.memory.pause(entry)
  const ended = await at.node.release({ sandbox: entry.id, reason: 'over' })
  expect(ended).toMatchObject({ kind: 'stopped', detail: 'over' })
  expect(await at.saved()).toEqual([])
  await expect(at.node.sandboxes.lend(entry.id)).rejects.toMatchObject({ code: 'sandbox_gone' })
})

test('what a daemon did not see through is brought in line by the next', async () => {
  await using at = await setup()
  const running = await at.entry()
  // Killed while it saved the memory, or before it removed that of a resumed one.
  await mkdir(`${at.checkpointDirectory}/${running.id}`)
  for (const name of ['half.part', 'fork_1', 'sn_kept']) {
    await mkdir(`${at.checkpointDirectory}/${name}`)
  }
  await at.node.close('keep')
  const { node, recovered } = await at.open()
  expect(recovered).toMatchObject({ adopted: 1, paused: 0 })
  expect(await at.saved()).toEqual(['sn_kept'])
  expect(node.sandboxes.entries.get(running.id)?.state).toBe('running')
  // Its memory is gone: then so is the sandbox.
  const entry = node.sandboxes.entries.get(running.id) as Entry
  await node.sandboxes.memory.pause(entry)
  await node.close('keep')
  await rm(`${at.checkpointDirectory}/${entry.id}`, { recursive: true })
  const next = await at.open()
  expect(next.recovered).toMatchObject({ adopted: 0, paused: 0, dead: 1 })
  await next.node.close('stop')
})

test('what fails leaves it as it was', async () => {
  let cue: 'fail' | undefined
  await using at = await setup({ onDress: () => cue })
  const { memory } = at.node.sandboxes
  const entry = await at.entry()
  await mkdir(`${at.checkpointDirectory}/x`)
  const checkpoint = at.machine.checkpoints
  checkpoint.set = () => {
    throw Object.assign(new Error('the disk is full'), { code: 'ENOSPC' })
  }
  await expect(memory.pause(entry)).rejects.toMatchObject({ code: 'internal' })
  expect(entry.state).toBe('running')
  await leave(at.node, entry.id)
  checkpoint.set = Map.prototype.set
  await memory.pause(entry)
  cue = 'fail'
  await expect(memory.resume(entry, WAIT)).rejects.toMatchObject({ code: 'create_failed' })
  expect(entry.state).toBe('paused')
  expect(at.node.room.used.sandboxes).toBe(0)
  cue = undefined
  await memory.resume(entry, WAIT)
  expect(await left(at.node, entry.id)).toBe('something')
})

test('time does not pass for it', async () => {
  await using at = await setup()
  const entry = await at.entry({ keepWarmMs: 60_000, lifetimeMs: 100_000 })
  at.clock.ahead = 30_000
  await at.node.sandboxes.memory.pause(entry)
  at.clock.ahead = 3_600_000
  expect(entry.pastTime(at.clock.now())).toBeUndefined()
  await at.node.sandboxes.memory.resume(entry, WAIT)
  expect(entry.pastTime(at.clock.now())).toBeUndefined()
  expect(entry.sandbox?.spec.lifetimeMs).toBeGreaterThan(60_000)
  expect(entry.sandbox?.spec.lifetimeMs).toBeLessThanOrEqual(70_000)
  expect(entry.pastTime(at.clock.now() + 80_000)).toContain('lifetime')
  expect(entry.pastTime(at.clock.now() + 61_000)).toContain('nobody used it')
})

test('memory that was deleted is started by nobody', async () => {
  await using at = await setup()
  await expect(at.entry({ checkpoint: newId('snapshot') })).rejects.toMatchObject({
    ...{ code: 'snapshot_unknown', fault: 'caller' },
    message: expect.stringContaining('was deleted'),
  })
  expect(at.node.room.used.sandboxes).toBe(0)
})

test('others than those made for it are refused with what to do', async () => {
  await using at = await setup()
  const entry = await at.entry({ checkpointable: false })
  await expect(at.node.sandboxes.memory.pause(entry)).rejects.toMatchObject({
    code: 'unsupported',
    hint: expect.stringContaining('checkpointable: true'),
  })
  await at.node.release({ sandbox: entry.id, reason: 'over' })
  const attempt = await at.entry({ owner: 'run/key/1' })
  await expect(at.node.sandboxes.memory.pause(attempt)).rejects.toMatchObject({
    code: 'invalid_request',
  })
})
