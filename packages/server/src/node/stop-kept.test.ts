import type { Sandbox } from '@sandlot/runtime'
import { expect, test } from 'vitest'
import { openNode } from '../testing/node.ts'
import { Node } from './node.ts'

/** A node that is killed when it is about to end its sandbox, and the next one. */
async function killedAtStop(beforeItsEnd: (at: Opened, sandbox: Sandbox) => void) {
  const stack = new AsyncDisposableStack()
  const at = stack.use(await openNode())
  const { sandbox } = await at.node.acquire(at.request())
  const asked = Promise.withResolvers<Sandbox>()
  const over = Promise.withResolvers<void>()
  const { driver } = at
  const stop = driver.stop.bind(driver)
  driver.stop = async (which) => {
    asked.resolve(which as Sandbox)
    await over.promise
    return await stop(which)
  }
  const released = at.node.release({ sandbox, reason: 'its attempt is over' })
  stack.defer(async () => {
    over.resolve()
    await released
  })
  beforeItsEnd(at, await asked.promise)
  driver.stop = stop
  const next = await Node.open(at.given)
  stack.defer(() => next.close('stop'))
  return { next, sandbox, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}
type Opened = Awaited<ReturnType<typeof openNode>>

const RELEASED = { kind: 'stopped', asked: true, detail: 'its attempt is over' }

test('a sandbox that a killed node had ended was stopped, not lost', async () => {
  await using at = await killedAtStop(({ driver }, { id }) => driver.kill(id, 'lost'))
  expect(await at.next.recover()).toMatchObject({ adopted: 0, dead: 1 })
  expect(await at.next.find(at.sandbox)).toMatchObject(RELEASED)
})

test('also where nothing is left of it', async () => {
  await using at = await killedAtStop(({ driver }, { id, hostId }) => {
    driver.kill(id, 'lost')
    driver.machine.remove(hostId)
  })
  expect(await at.next.recover()).toMatchObject({ adopted: 0, dead: 1 })
  expect(await at.next.find(at.sandbox)).toMatchObject(RELEASED)
})

test('one that still lives is ended, as was asked', async () => {
  await using at = await killedAtStop(() => {})
  expect(await at.next.recover()).toMatchObject({ adopted: 0, stopped: 1, dead: 0 })
  expect(await at.next.find(at.sandbox)).toMatchObject(RELEASED)
})

test('what its memory ended before is not called stopped', async () => {
  await using at = await killedAtStop(({ driver }, { id }) => driver.kill(id, 'oom_limit'))
  await at.next.recover()
  expect(await at.next.find(at.sandbox)).toMatchObject({ kind: 'oom_limit', asked: false })
})
