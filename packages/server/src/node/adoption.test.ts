import { expect, test } from 'vitest'
import { createManualClock } from '../coordinator/simulated/clock.ts'
import { openNode } from '../testing/node.ts'
import { Node } from './node.ts'

const DECADES_MS = 30 * 365 * 86_400_000
const HOURS_MS = 10 * 3_600_000

async function setup(keepWarmMs: number, lifetimeMs: number) {
  const clock = createManualClock()
  const at = await openNode({ node: { clock } })
  const { sandbox } = await at.node.acquire(at.request({ keepWarmMs, lifetimeMs }))
  return { at, clock, sandbox }
}

test('one that was in use is kept warm anew by the daemon that adopts it', async () => {
  const { at, clock, sandbox } = await setup(60_000, 10 * 60_000)
  await using _ = at
  clock.advance(50_000)
  await at.node.sandboxes.lend(sandbox).then((lent) => lent[Symbol.dispose]())
  await at.node.close('keep')
  clock.advance(20_000)
  const next = await Node.open(at.given)
  await using stack = new AsyncDisposableStack()
  stack.defer(() => next.close('stop'))
  expect(await next.recover()).toMatchObject({ adopted: 1 })
  const entry = next.sandboxes.entries.get(sandbox)
  expect(entry?.pastTime(clock.now())).toBeUndefined()
  expect(entry?.pastTime(clock.now() + 60_000)).toMatch('nobody used it for 60000 ms')
  // Its lifetime counts from its own beginning.
  expect(entry?.pastTime(clock.now() + 10 * 60_000 - 70_000)).toMatch('its lifetime')
})

test('a clock that was set while no daemon was there ages nothing beyond its machine', async () => {
  const { at, clock, sandbox } = await setup(HOURS_MS, HOURS_MS)
  await using _ = at
  // It is written down since when it is metered.
  const record = async () => (await at.engine.kv.get(`sandbox/${sandbox}`))?.value
  while (!Buffer.from((await record()) ?? '').includes('meteredFromMs')) clock.advance(1_000)
  await at.node.close('keep')
  clock.advance(DECADES_MS)
  const machineStartedMs = () => clock.now() - 90_000
  const next = await Node.open({ ...at.given, clock: { ...clock, machineStartedMs } })
  await using stack = new AsyncDisposableStack()
  stack.defer(() => next.close('stop'))
  expect(await next.recover()).toMatchObject({ adopted: 1 })
  expect(next.sandboxes.entries.get(sandbox)?.pastTime(clock.now())).toBeUndefined()
  const ended = await next.release({ sandbox, reason: 'over' })
  expect(ended.metered?.ms).toBe(90_000)
})

test('nor is it younger than now where the clock was set back', async () => {
  const { at, clock, sandbox } = await setup(60_000, 10 * 60_000)
  await using _ = at
  await at.node.close('keep')
  const back = { ...clock, now: () => clock.now() - DECADES_MS }
  const next = await Node.open({ ...at.given, clock: back })
  await using stack = new AsyncDisposableStack()
  stack.defer(() => next.close('stop'))
  expect(await next.recover()).toMatchObject({ adopted: 1 })
  const entry = next.sandboxes.entries.get(sandbox)
  expect(entry?.pastTime(back.now() + 10 * 60_000)).toMatch('its lifetime')
  expect((await next.release({ sandbox, reason: 'over' })).metered?.ms).toBe(0)
})
