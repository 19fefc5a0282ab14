import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'
import type { PhaseNetwork } from '@sandlot/protocol'
import { FakeDriver, FakeMachine, type Sandbox } from '@sandlot/runtime'
import { describe, expect, test } from 'vitest'
import { createManualClock } from '../coordinator/simulated/clock.ts'
import { openNode } from '../testing/node.ts'
import type { Entry } from './entry.ts'
import { Node } from './node.ts'
import { Ownership } from './ownership.ts'
import type { AcquireRequest } from './port.ts'

type Relay = Sandbox['guest']['relay'] & {
  port?: number
  brokenOff: BrokenOff
  connect(): NodeJS.ReadWriteStream
}
type BrokenOff = Awaited<ReturnType<Relay['listen']>>

const PHASES: PhaseNetwork = {
  setup: { allow: ['127.0.0.1:1'] },
  grade: { allow: ['127.0.0.1:2'] },
}

function relayOf(node: Node, id: string): Relay {
  return node.sandboxes.entries.get(id)?.sandbox?.guest.relay as Relay
}

/** What a process inside is answered. */
async function askedFor(node: Node, id: string, host: string): Promise<string> {
  const connection = relayOf(node, id).connect()
  connection.write(`CONNECT ${host} HTTP/1.1\r\n\r\n`)
  const [answer] = await once(connection, 'data')
  connection.end()
  return String(answer)
}

const NOT_ALLOWED = 'HTTP/1.1 403'
/** It is allowed, and nobody listens. */
const ALLOWED = 'HTTP/1.1 502'

async function envOf(node: Node, id: string) {
  using lent = await node.sandboxes.lend(id)
  return lent.env
}

test('a sandbox without a policy has no way out, and no variables', async () => {
  await using at = await openNode()
  const { sandbox } = await at.node.acquire(at.request({ network: { agent: 'none' } }))
  expect(relayOf(at.node, sandbox).port).toBeUndefined()
  expect(await envOf(at.node, sandbox)).not.toHaveProperty('HTTP_PROXY')
  await at.node.enterPhase({ sandbox, phase: 'grade' })
})

test('the policy of the phase decides, and what an owner sets goes before it', async () => {
  await using at = await openNode()
  const { node } = at
  const env = { NO_PROXY: 'mine' }
  const request = at.request({ network: PHASES, phase: 'setup', env })
  const { sandbox } = await node.acquire(request)
  expect(await askedFor(node, sandbox, '127.0.0.1:1')).toContain(ALLOWED)
  expect(await askedFor(node, sandbox, '127.0.0.1:2')).toContain(NOT_ALLOWED)
  expect(await envOf(node, sandbox)).toMatchObject({
    HTTP_PROXY: 'http://127.0.0.1:61080',
    NO_PROXY: 'mine',
  })
  await node.enterPhase({ sandbox, phase: 'agent' })
  expect(await askedFor(node, sandbox, '127.0.0.1:1')).toContain(NOT_ALLOWED)
  expect(await envOf(node, sandbox)).not.toHaveProperty('HTTP_PROXY')
  await node.openGradeWorld({ sandbox })
  await node.enterPhase({ sandbox, phase: 'grade', world: 'grade' })
  expect(await askedFor(node, sandbox, '127.0.0.1:2')).toContain(ALLOWED)
  expect(await node.release({ sandbox, reason: 'over' })).toMatchObject({
    usage: { networkBytes: 0 },
  })
})

test('a restart finds the phase again', async () => {
  await using at = await openNode()
  const request = at.request({ network: PHASES, phase: 'setup' })
  const { sandbox } = await at.node.acquire(request)
  await at.node.enterPhase({ sandbox, phase: 'agent' })
  await at.node.close('keep')
  const next = await Node.open(at.given)
  await using stack = new AsyncDisposableStack()
  stack.defer(() => next.close('stop'))
  await next.recover()
  expect(await envOf(next, sandbox)).not.toHaveProperty('HTTP_PROXY')
  expect(await askedFor(next, sandbox, '127.0.0.1:1')).toContain(NOT_ALLOWED)
  await next.enterPhase({ sandbox, phase: 'grade' })
  expect(await askedFor(next, sandbox, '127.0.0.1:2')).toContain(ALLOWED)
})

/** Says one thing to whoever connects. */
async function greeter(): Promise<Server & AsyncDisposable> {
  const server = createServer((socket) => socket.end('hello').resume())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

test('what it has sent and got is counted on, through a pause, a restart and a crash', async () => {
  await using server = await greeter()
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const clock = createManualClock()
  const machine = new FakeMachine()
  const capabilities = { memorySnapshot: true }
  await using at = await openNode({ machine, capabilities, node: { clock } })
  const network = { agent: { allow: [host] } }
  const { sandbox: id } = await at.node.acquire(
    at.request({ network, checkpointable: true, owner: 'client' }),
  )
  const entryOf = (node: Node) => node.sandboxes.entries.get(id) as Entry
  const greeted = async (node: Node, bytes: number) => {
    // Before, it is the daemon of before that answers.
    await entryOf(node).ready
    expect(await askedFor(node, id, host)).toContain('HTTP/1.1 200')
    await expect.poll(() => entryOf(node).networkBytes).toBe(bytes)
  }
  await greeted(at.node, 5)
  await at.node.sandboxes.memory.pause(entryOf(at.node))
  await at.node.sandboxes.memory.resume(entryOf(at.node), {
    waitMs: 0,
    signal: new AbortController().signal,
  })
  await greeted(at.node, 10)
  // Written down when the daemon ends, and without that now and then.
  await at.node.close('keep')
  const next = await Node.open({ ...at.given, driver: new FakeDriver({ machine, capabilities }) })
  await next.recover()
  await greeted(next, 15)
  clock.advance(30_000)
  // It is known in memory before it is written, and a crash leaves what is written.
  const kept = async () => (await new Ownership(at.engine).list()).map((each) => each.networkBytes)
  await expect.poll(() => kept()).toEqual([15])
  const last = await Node.open({ ...at.given, driver: new FakeDriver({ machine, capabilities }) })
  await last.recover()
  await greeted(last, 20)
  expect(await last.release({ sandbox: id, reason: 'over' })).toMatchObject({
    usage: { networkBytes: 20 },
  })
  await last.close('stop')
})

describe('whose connections broke off with a daemon', () => {
  /** The end of a sandbox that the next daemon has, after what it does there. */
  async function endOf(
    more: Partial<AcquireRequest>,
    brokenOff: BrokenOff,
    then: (node: Node, id: string) => Promise<unknown> = async () => {},
  ) {
    const machine = new FakeMachine()
    await using at = await openNode({ machine })
    const { sandbox: id } = await at.node.acquire(at.request(more))
    relayOf(at.node, id).brokenOff = brokenOff
    await at.node.close('keep')
    const next = await Node.open({ ...at.given, driver: new FakeDriver({ machine }) })
    await next.recover()
    await next.sandboxes.entries.get(id)?.ready
    await then(next, id)
    const ended = await next.release({ sandbox: id, reason: 'over' })
    await next.close('stop')
    return ended
  }
  const away = { connections: 2, unanswered: 0 }
  const network = { agent: { allow: ['127.0.0.1:1'] } }

  test('is told at the end of the sandbox', async () => {
    expect(await endOf({ network }, away)).toMatchObject({ cutOff: true })
    expect((await endOf({ network }, { connections: 0, unanswered: 0 })).cutOff).toBeUndefined()
  })

  test('but not of one that has reached something since', async () => {
    await using server = await greeter()
    const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
    const allowing = { network: { agent: { allow: [host] } } }
    const asks = (node: Node, id: string) => askedFor(node, id, host)
    expect((await endOf(allowing, away, asks)).cutOff).toBeUndefined()
    const refused = (node: Node, id: string) => askedFor(node, id, '127.0.0.1:2')
    expect(await endOf(allowing, away, refused)).toMatchObject({ cutOff: true })
  })

  test('nor of one that kept a connection to its model, and waited for nothing', async () => {
    const model = 'http://127.0.0.1:1/v1'
    expect((await endOf({ model }, away)).cutOff).toBeUndefined()
    expect(await endOf({ model }, { connections: 2, unanswered: 1 })).toMatchObject({
      cutOff: true,
    })
  })
})
