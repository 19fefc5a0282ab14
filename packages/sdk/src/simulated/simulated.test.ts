import { expect, test } from 'vitest'
import { simulatedModel } from './model.ts'
import { simulatedTrainer } from './trainer.ts'

const options = { latency: '0ms', answer: (_: string, random: number) => random }

test('what a seed draws it draws again, call by call and for each seed of a call', async () => {
  const [one, two] = [
    simulatedModel({ ...options, seed: 3 }),
    simulatedModel({ ...options, seed: 3 }),
  ]
  const first = [await one('a'), await one('b')]
  expect([await two('a'), await two('b')]).toEqual(first)
  expect(first[0]).not.toBe(first[1])
  expect(await one('a', { seed: 7 })).toBe(await two('c', { seed: 7 }))
  expect(await simulatedModel({ ...options, seed: 4 })('a')).not.toBe(first[0])
})

test('it fails as often as it is told to, as a model fails', async () => {
  const model = simulatedModel({ ...options, failures: 0.5 })
  const all = await Promise.allSettled(Array.from({ length: 200 }, () => model('a')))
  const failed = all.filter(({ status }) => status === 'rejected')
  expect(failed.length).toBeGreaterThan(60)
  expect(failed.length).toBeLessThan(140)
  await expect(simulatedModel({ ...options, failures: 1 })('a')).rejects.toMatchObject({
    name: 'ModelError',
  })
})

test('who finds no slot waits in line, and leaves it when called off', async () => {
  const model = simulatedModel({
    ...{ latency: '0ms', slots: 1 },
    answer: async (name: string) => name,
  })
  const held = simulatedModel({ latency: '1h', slots: 1, answer: () => 0 })
  const abort = new AbortController()
  const waiting = [held('a', { signal: abort.signal }), held('b', { signal: abort.signal })]
  abort.abort(new Error('enough'))
  for (const each of waiting) await expect(each).rejects.toThrow('enough')
  expect(await Promise.all(['a', 'b', 'c'].map((name) => model(name)))).toEqual(['a', 'b', 'c'])
})

test('a step of the trainer tells the run its next version', async () => {
  const told: number[] = []
  const run = { setPolicyVersion: async (version: number) => void told.push(version) }
  const trainer = simulatedTrainer({ step: '0ms', version: 4 })
  await trainer.step(run as never)
  await trainer.step(run as never)
  expect(told).toEqual([5, 6])
  expect(trainer.version).toBe(6)
})

test.each([
  [() => simulatedModel({ ...options, latency: 'long' }), 'is not how long something takes'],
  [() => simulatedModel({ ...options, failures: 2 }), 'failures: 2 is not a share'],
  [() => simulatedModel({ ...options, slots: 0 }), 'slots: 0 is not a number from 1'],
  [() => simulatedModel({ ...options, latencies: '1s' } as never), 'latencies'],
  [() => simulatedTrainer({ step: '1 parsec' }), 'step: '],
])('a mistake is told: %s', (make, message) => {
  expect(make).toThrow(message)
})
