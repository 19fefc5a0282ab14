import { usageReport } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { startTestDaemon } from '../testing/daemon.ts'

const prices = { currency: 'USD', cpuHour: 3_600, memoryGibHour: 0, diskGibHour: 0, gpuHour: 0 }

test('sandboxes of clients are metered, while they live and when they have ended', async () => {
  await using at = await startTestDaemon({ daemon: { prices } })
  const usage = async (query = '') => {
    const reply = await at.ask('GET', `/v1/usage${query}`)
    expect(reply.status).toBe(200)
    return usageReport.parse(reply.json)
  }
  expect(await usage()).toMatchObject({ by: 'day', currency: 'USD', lines: [], idle: {} })
  const { id } = await at.sandbox({ resources: { cpu: 1 } })
  const living = await usage('?by=run')
  expect(living.lines).toMatchObject([{ project: 'default', kind: 'sandbox', sandboxes: 1 }])
  await at.ask('DELETE', `/v1/sandboxes/${id}`)
  const ended = await usage('?by=project')
  expect(ended.lines).toMatchObject([{ project: 'default', sandboxes: 1 }])
  const { seconds, costMicros, allocated } = ended.total
  expect(seconds).toBeGreaterThanOrEqual(living.total.seconds)
  // A processor for a second is a dollar.
  expect(Math.abs((costMicros ?? 0) / 1e6 - seconds)).toBeLessThan(0.001)
  expect(allocated.cpuSeconds).toBe(seconds)
  expect((await usage('?from=2020-01-01&to=2020-02-01')).lines).toEqual([])
})

test('without prices nothing costs anything', async () => {
  await using at = await startTestDaemon()
  await at.sandbox()
  const reply = await at.ask('GET', '/v1/usage')
  expect(reply.json).toMatchObject({ currency: null, total: { costMicros: null } })
})

test.each([
  ['?by=hour', 'query.by'],
  ['?from=yesterday', 'query.from'],
  ['?from=2026-03-02&to=2026-03-01', 'from'],
  ['?since=1d', 'since'],
])('%s is refused', async (query, message) => {
  await using at = await startTestDaemon()
  const reply = await at.ask('GET', `/v1/usage${query}`)
  expect(reply.code).toBe('invalid_request')
  expect(reply.text).toContain(message)
})
