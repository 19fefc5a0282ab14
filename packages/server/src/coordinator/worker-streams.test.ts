import type { InputBody, Run } from '@sandlot/core'
import { SandlotError, type WorkerEventFromServer } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { leaseId } from './ids.ts'
import type { RunActor, Settled } from './run-actor.ts'
import { WorkerStreams } from './worker-streams.ts'

/** Streams whose actor decides when the test says so. */
function setUp(keepBlob: () => Promise<void> = async () => {}) {
  const waiting: (() => void)[] = []
  const posted: InputBody[] = []
  const actor = {
    run: { live: new Map(), workers: new Map() } as unknown as Run,
    inputsWaiting: 0,
    post(input: InputBody, settled?: Settled) {
      posted.push(input)
      waiting.push(() => settled?.({ ok: true }))
    },
    decide(make: () => readonly InputBody[]) {
      waiting.push(() => posted.push(...make()))
    },
  } as unknown as RunActor
  const streams = new WorkerStreams({ actor, keepBlob })
  const events: WorkerEventFromServer[] = []
  const attach = () =>
    streams.attach(
      { run: 'a', worker: 'wk_1', slots: 1, held: [] },
      { send: (event) => events.push(event) },
    )
  const decideAll = () => {
    for (const decide of waiting.splice(0)) decide()
  }
  return { streams, attach, decideAll, posted, events }
}

const of = { lease: leaseId({ episode: 0, attempt: 1, token: 1 }), token: 1 }
const report = {
  kind: 'report',
  ...of,
  agentMs: 1,
  modelMs: 0,
  lagMs: 0,
  flags: [] as 'disk'[],
} as const

test('no lease goes to a connection before its attachment was decided on', async () => {
  const { streams, attach, decideAll } = setUp()
  attach()
  expect(streams.isAttached('wk_1')).toBe(false)
  decideAll()
  expect(streams.isAttached('wk_1')).toBe(true)
  const later = attach()
  expect(streams.isAttached('wk_1')).toBe(false)
  decideAll()
  expect(streams.isAttached('wk_1')).toBe(true)
  later.lost()
  expect(streams.isAttached('wk_1')).toBe(false)
})

test('what an earlier connection says after a later one came is not heard', async () => {
  const { attach, decideAll, posted } = setUp()
  const earlier = attach()
  attach()
  decideAll()
  await earlier.done
  earlier.receive({ kind: 'renew', leases: [], lagMs: 0 })
  earlier.lost()
  earlier.left()
  expect(posted.map(({ type }) => type)).toEqual(['worker_attached', 'worker_attached'])
})

test('a blob that could not be kept by our fault makes the worker come back, and is no result', async () => {
  const { attach, decideAll, posted, events } = setUp(async () => {
    throw new SandlotError('disk_full', 'full')
  })
  const stream = attach()
  decideAll()
  stream.receive({ ...report, report: { kind: 'returned', reward: 1, dataBlob: 'sha256:1' } })
  await expect(stream.done).rejects.toMatchObject({ code: 'draining' })
  expect(posted.map(({ type }) => type)).toEqual(['worker_attached', 'worker_detached'])
  expect(events).toEqual([])
})

test('the end of the run ends every stream; a coordinator that lets go cuts it', async () => {
  for (const reason of ['over', 'gone'] as const) {
    const { attach, streams } = setUp()
    const { done } = attach()
    streams.end(reason)
    if (reason === 'over') await done
    else await expect(done).rejects.toMatchObject({ code: 'draining' })
    expect(streams.attached).toBe(0)
  }
})
