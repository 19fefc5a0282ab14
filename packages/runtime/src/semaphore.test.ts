import { expect, test } from 'vitest'
import { Semaphore } from './semaphore.ts'

test('no more than its size at once, in order, and nothing lost by an abort', async () => {
  const semaphore = new Semaphore(2)
  const order: number[] = []
  const gates = [0, 1, 2, 3].map(() => Promise.withResolvers<void>())
  const aborted = new AbortController()
  const uses = [0, 1, 2, 3].map((n) =>
    semaphore.use(n === 2 ? aborted.signal : undefined, async () => {
      order.push(n)
      await gates[n]?.promise
    }),
  )
  expect(order).toEqual([0, 1])
  expect(semaphore.waiting).toBe(2)
  aborted.abort(new Error('enough'))
  await expect(uses[2]).rejects.toThrow('enough')
  gates[1]?.resolve()
  await uses[1]
  await Promise.resolve()
  expect(order).toEqual([0, 1, 3])
  gates[0]?.resolve()
  gates[3]?.resolve()
  await Promise.all([uses[0], uses[3]])
  expect(semaphore.held).toBe(0)
  await expect(semaphore.use(aborted.signal, async () => {})).rejects.toThrow('enough')
})

test('a failure gives its place back', async () => {
  const semaphore = new Semaphore(1)
  await expect(semaphore.use(undefined, () => Promise.reject(new Error('no')))).rejects.toThrow()
  expect(await semaphore.use(undefined, async () => 1)).toBe(1)
})
