import { expect, test } from 'vitest'
import { unlessAborted, unlessLate } from './waits.ts'

test('all who wait for one signal are told its reason, and who left is not', async () => {
  const aborting = new AbortController()
  const { promise: never } = Promise.withResolvers<string>()
  const done = unlessAborted(Promise.resolve('done'), aborting.signal)
  const waits = Array.from({ length: 3 }, () => unlessAborted(never, aborting.signal))
  expect(await done).toBe('done')
  const reason = new Error('stopping')
  aborting.abort(reason)
  const settled = await Promise.allSettled(waits)
  expect(settled).toEqual(waits.map(() => ({ status: 'rejected', reason })))
  await expect(unlessAborted(never, aborting.signal)).rejects.toBe(reason)
})

test('the work’s own failure is told, also behind a wait that is over', async () => {
  const failure = new Error('refused')
  const failing = () => Promise.reject(failure)
  await expect(unlessAborted(failing(), new AbortController().signal)).rejects.toBe(failure)
  await expect(unlessLate(failing(), 60_000)).rejects.toBe(failure)
  const aborted = AbortSignal.abort(new Error('stopping'))
  await expect(unlessAborted(failing(), aborted)).rejects.toThrow('stopping')
})

test('work that takes too long is a timeout', async () => {
  const { promise: never } = Promise.withResolvers<string>()
  await expect(unlessLate(never, 1)).rejects.toMatchObject({ name: 'TimeoutError' })
  expect(await unlessLate(Promise.resolve('in time'), 60_000)).toBe('in time')
})
