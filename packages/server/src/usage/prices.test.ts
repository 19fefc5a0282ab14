import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { daemonOptions } from '../config.ts'
import { microsOf, parsePrices } from './prices.ts'

const HOUR_MS = 3_600_000

test('an hour costs what the table says, in whole millionths', () => {
  const prices = parsePrices(
    'SANDLOT_PRICES',
    '{"currency":"EUR","cpuHour":0.05,"memoryGibHour":0.01,"diskGibHour":0.001}',
  )
  const hour = { ms: HOUR_MS, cpuMs: 0, memoryMibMs: 0, diskMibMs: 0, gpuMs: 0 }
  expect(microsOf(prices, { ...hour, cpuMs: 2 * HOUR_MS })).toBe(100_000)
  expect(microsOf(prices, { ...hour, memoryMibMs: 512 * HOUR_MS })).toBe(5_000)
  expect(microsOf(prices, { ...hour, diskMibMs: 10 * 1_024 * HOUR_MS })).toBe(10_000)
  expect(microsOf({ ...prices, gpuHour: 2.5 }, { ...hour, gpuMs: 2 * HOUR_MS })).toBe(5_000_000)
  expect(microsOf(prices, { ...hour, cpuMs: 1 })).toBe(0)
})

test('it comes from the environment, as JSON or as the path of a file; without it nothing has a price', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'prices-'))
  try {
    const path = join(folder, 'prices.json')
    await writeFile(path, '{"currency":"USD","cpuHour":1}')
    const table = { currency: 'USD', cpuHour: 1, memoryGibHour: 0, diskGibHour: 0, gpuHour: 0 }
    const pricesOf = (SANDLOT_PRICES: string) => daemonOptions({}, { SANDLOT_PRICES }).prices
    expect(pricesOf(path)).toEqual(table)
    expect(pricesOf(' {"currency":"USD","cpuHour":1}')).toEqual(table)
    expect(pricesOf('')).toBeNull()
    expect(daemonOptions({}, {}).prices).toBeNull()
  } finally {
    await rm(folder, { recursive: true })
  }
})

test.each([
  ['{"currency":"USD","cpuHour":-1}', 'SANDLOT_PRICES: cpuHour: '],
  ['{"currency":"USD","cpuhour":1}', 'cpuhour'],
  ['{"cpuHour":1}', 'SANDLOT_PRICES: currency: '],
  ['{"currency":"USD",', 'SANDLOT_PRICES: is not JSON'],
  ['/no/such/file', `SANDLOT_PRICES: "/no/such/file" can't be read`],
  ['{"currency":"USD","cpuHour":"1"}', 'cpuHour'],
])('a table that is none is refused by name: %s', (given, message) => {
  expect(() => parsePrices('SANDLOT_PRICES', given)).toThrow(message)
  expect(() => parsePrices('SANDLOT_PRICES', given)).toThrow(
    expect.objectContaining({ code: 'invalid_request' }),
  )
})
