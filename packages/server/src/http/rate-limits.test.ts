import type { SandlotError } from '@sandlot/protocol'
import { Sandlot } from 'sandlot'
import { expect, test } from 'vitest'
import { SERVER_LIMITS } from '../limits.ts'
import { startTestDaemon } from '../testing/daemon.ts'
import { RateLimits } from './rate-limits.ts'

const failure = (work: () => void): SandlotError | undefined => {
  try {
    work()
  } catch (error) {
    return error as SandlotError
  }
  return undefined
}

test('a key may ask four seconds’ worth at once, then as it comes, and holds up no other', () => {
  const clock = { nowMs: 0 }
  const limits = new RateLimits({ requestsPerSecond: 10, now: () => clock.nowMs })
  for (let n = 0; n < 40; n++) limits.take('a')
  const refused = failure(() => limits.take('a'))
  expect(refused).toMatchObject({ code: 'rate_limited', details: { retryAfterMs: 100 } })
  limits.take('b')
  clock.nowMs += 100
  limits.take('a')
  expect(failure(() => limits.take('a'))?.code).toBe('rate_limited')
  clock.nowMs += 1e9
  for (let n = 0; n < 40; n++) limits.take('a')
  expect(failure(() => limits.take('a'))?.code).toBe('rate_limited')
})

test('without a limit nobody is held up', () => {
  const limits = new RateLimits({ requestsPerSecond: 0, now: () => 0 })
  for (let n = 0; n < 100_000; n++) limits.take('a')
})

test('over HTTP it is told when to come again, and the SDK does', async () => {
  // So few that a slow machine is not given as many meanwhile as it asks.
  await using at = await startTestDaemon({ daemon: { requestsPerSecond: 1 } })
  const all = await Promise.all(Array.from({ length: 30 }, () => at.ask('GET', '/v1/sandboxes')))
  const limited = all.filter(({ status }) => status === 429)
  expect(limited.length).toBeGreaterThan(5)
  for (const { code, headers } of limited) {
    expect(code).toBe('rate_limited')
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
  }
  await using client = new Sandlot({ url: at.url, apiKey: at.daemon.apiKey })
  expect(await Array.fromAsync(client.sandboxes.list())).toEqual([])
})

test('who tries keys is told to wait, and good ones from the same address are not', async () => {
  await using at = await startTestDaemon()
  const codes = new Set<string | undefined>()
  // However slow the machine is, they come faster than refusals are forgotten.
  while (!codes.has('rate_limited')) {
    const tries = Array.from({ length: SERVER_LIMITS.refusalsBurst }, () =>
      at.ask('GET', '/v1/sandboxes', { key: 'guess' }),
    )
    for (const { code } of await Promise.all(tries)) codes.add(code)
  }
  expect(codes).toEqual(new Set(['unauthorized', 'rate_limited']))
  expect((await at.ask('GET', '/v1/sandboxes')).status).toBe(200)
})
