import { newId } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { startTestDaemon, type TestDaemon } from '../testing/daemon.ts'
import { GatedDriver } from '../testing/gated-driver.ts'

/** What can be asked of a sandbox that saves something of it. */
const ASKED = {
  files: ['snapshots', { kind: 'filesystem' }],
  memory: ['snapshots', { kind: 'memory' }],
  'fork of files': ['fork', { kind: 'filesystem', count: 1 }],
  'fork of memory': ['fork', { count: 1 }],
  pause: ['pause', {}],
} as const
type Asked = keyof typeof ASKED
const ALL = Object.keys(ASKED) as Asked[]

/** Brings a sandbox into a state, and out of it again. */
type Bring = (at: TestDaemon, driver: GatedDriver) => Promise<{ id: string; end: () => void }>

const ask = (at: TestDaemon, id: string, path: string, json: object = {}) =>
  at.ask('POST', `/v1/sandboxes/${id}/${path}`, { json })
const create = async (at: TestDaemon) => (await at.sandbox({ checkpointable: true })).id

/** Nobody waits for its answer. */
const unheard = (asking: Promise<unknown>) => void asking.catch(() => {})

const gated = async (driver: GatedDriver, call: Parameters<GatedDriver['closeGate']>[0]) => {
  const open = driver.closeGate(call)
  return {
    begun: async () => await expect.poll(() => driver.arrived).toBeGreaterThan(0),
    end: open,
  }
}

const STATES: Record<string, Bring> = {
  starting: async (at, driver) => {
    const { begun, end } = await gated(driver, 'create')
    const key = newId('exec')
    const json = { from: await at.image(), checkpointable: true }
    unheard(at.ask('POST', '/v1/sandboxes', { json, idempotencyKey: key }))
    await begun()
    const listed = await at.ask('GET', '/v1/sandboxes')
    return { id: (listed.json as { items: { id: string }[] }).items[0]?.id ?? '', end }
  },
  pausing: async (at, driver) => {
    const id = await create(at)
    const { begun, end } = await gated(driver, 'checkpoint')
    unheard(ask(at, id, 'pause'))
    await begun()
    return { id, end }
  },
  paused: async (at) => {
    const id = await create(at)
    await ask(at, id, 'pause')
    return { id, end: () => {} }
  },
  resuming: async (at, driver) => {
    const id = await create(at)
    await ask(at, id, 'pause')
    const { begun, end } = await gated(driver, 'restore')
    unheard(ask(at, id, 'resume'))
    await begun()
    return { id, end }
  },
  stopping: async (at, driver) => {
    const id = await create(at)
    const { begun, end } = await gated(driver, 'stop')
    unheard(at.ask('DELETE', `/v1/sandboxes/${id}`))
    await begun()
    return { id, end }
  },
  stopped: async (at) => {
    const id = await create(at)
    await at.ask('DELETE', `/v1/sandboxes/${id}`)
    return { id, end: () => {} }
  },
  unknown: async () => ({ id: newId('sandbox'), end: () => {} }),
}

/** What comes of it: done once the state is over, or refused. */
const OUTCOMES: Record<keyof typeof STATES, (asked: Asked) => 'done' | string> = {
  starting: () => 'done',
  pausing: (asked) => (asked === 'pause' ? 'done' : 'sandbox_paused'),
  paused: (asked) => (asked === 'pause' ? 'done' : 'sandbox_paused'),
  resuming: () => 'done',
  stopping: () => 'sandbox_gone',
  stopped: () => 'sandbox_gone',
  unknown: () => 'sandbox_unknown',
}

test.each(Object.keys(STATES).flatMap((state) => ALL.map((asked) => [asked, state] as const)))(
  '%s of a sandbox that is %s',
  async (asked, state) => {
    const driver = new GatedDriver({ capabilities: { memorySnapshot: true } })
    await using at = await startTestDaemon({ driver, daemon: { poolTarget: 0 } })
    const { id, end } = await (STATES[state] as Bring)(at, driver)
    const [path, json] = ASKED[asked]
    const asking = ask(at, id, path, json)
    // What is asked has come before the state is over.
    await at.ask('GET', '/v1/sandboxes')
    end()
    const reply = await asking
    const outcome = (OUTCOMES[state] as (asked: Asked) => string)(asked)
    if (outcome !== 'done') return expect(reply.code).toBe(outcome)
    expect(reply.code).toBeUndefined()
    if (path === 'fork') expect(reply.json).toMatchObject({ items: [{ sandbox: { parent: id } }] })
  },
)
