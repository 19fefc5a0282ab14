import { expect, test } from 'vitest'
import { Creations } from './creations.ts'

const never = new AbortController().signal

test('so many at once, those that somebody waits for first', async () => {
  const creations = new Creations(1)
  const first = Promise.withResolvers<void>()
  const order: string[] = []
  const started = (name: string) => async () => void order.push(name)
  const running = creations.run('asked', () => first.promise, { signal: never })
  const ahead = creations.run('ahead', started('ahead'), { signal: never })
  const asked = creations.run('asked', started('asked'), { signal: never, waitMs: 60_000 })
  expect(creations).toMatchObject({ underWay: 1, waiting: 1 })
  first.resolve()
  await Promise.all([running, ahead, asked])
  expect(order).toEqual(['asked', 'ahead'])
  expect(creations).toMatchObject({ underWay: 0, waiting: 0 })
})

test('whose turn does not come in time is refused for want of room, and takes nobody’s place', async () => {
  const creations = new Creations(1)
  const first = Promise.withResolvers<void>()
  const running = creations.run('asked', () => first.promise, { signal: never })
  const late = creations.run('asked', async () => 'late', { signal: never, waitMs: 10 })
  await expect(late).rejects.toMatchObject({
    code: 'capacity',
    message: expect.stringContaining('others wait to be started, 1 at once'),
  })
  const leaving = new AbortController()
  const left = creations.run('asked', async () => 'left', { signal: leaving.signal })
  leaving.abort(new Error('not wanted'))
  await expect(left).rejects.toThrow('not wanted')
  const next = creations.run('asked', async () => 'next', { signal: never, waitMs: 60_000 })
  expect(creations.waiting).toBe(1)
  first.resolve()
  await running
  expect(await next).toBe('next')
})
