import { expect, test } from 'vitest'
import { daemonOptions } from './config.ts'

test('what is empty counts as not given: nothing is opened to the network, or kept in any directory', () => {
  const none = daemonOptions({}, {})
  const empty = Object.fromEntries(
    [
      ...['HOST', 'PORT', 'DATA_DIRECTORY', 'RUN_DIRECTORY', 'POOL', 'POOL_IDLE', 'RETAIN'],
      ...['DURABILITY', 'LOG_LEVEL', 'DRIVER', 'PRICES', 'PORTS_URL', 'TLS_CERT', 'TLS_KEY'],
    ].map((name) => [`SANDLOT_${name}`, '']),
  )
  expect(daemonOptions({}, empty)).toEqual(none)
  expect(daemonOptions({ host: '', dataDirectory: '', runDirectory: '' }, {})).toEqual(none)
  expect(none).toMatchObject({ host: '127.0.0.1', dataDirectory: '/var/lib/sandlot' })
})

test('what ended is kept for a minute at least', () => {
  expect(() => daemonOptions({}, { SANDLOT_RETAIN: '1s' })).toThrow(
    'SANDLOT_RETAIN: "1s" is not a duration of at least a minute such as 30d',
  )
  expect(daemonOptions({}, { SANDLOT_RETAIN: '1m' }).retainMs).toBe(60_000)
})

test.each(['IMAGE_BYTES', 'DISK_FREE', 'MEMORY_FREE'])(
  'SANDLOT_%s of 0 is refused: it would mean what holds without it',
  (name) => {
    expect(() => daemonOptions({}, { [`SANDLOT_${name}`]: '0GiB' })).toThrow(
      `SANDLOT_${name}: "0GiB" is not a size above 0 such as `,
    )
  },
)

test('usage is told for a day at least', () => {
  expect(() => daemonOptions({}, { SANDLOT_RETAIN_USAGE: '0s' })).toThrow(
    'SANDLOT_RETAIN_USAGE: "0s" is not a duration of at least a day such as 90d',
  )
  expect(daemonOptions({}, { SANDLOT_RETAIN_USAGE: '1d' }).usageRetainMs).toBe(86_400_000)
})

test.each([' ', '0x10', '1e3', ' 8', '-1', '1_000', 'Infinity'])(
  'a number is written as one: %j is refused, with what was given',
  (given) => {
    for (const name of ['PORT', 'POOL', 'CPUS', 'REQUESTS_PER_SECOND']) {
      expect(() => daemonOptions({}, { [`SANDLOT_${name}`]: given })).toThrow(
        `SANDLOT_${name}: ${JSON.stringify(given)} is not a`,
      )
    }
  },
)

test.each([
  'ftp://a.org',
  'https://a.org/x',
  'a.org',
  'https://1.2.3.4',
  'http://[::1]:80',
  'https://0x7f.1',
])('names of ports can’t be below %s', (portsUrl) => {
  expect(() => daemonOptions({ portsUrl }, {})).toThrow(`SANDLOT_PORTS_URL: "${portsUrl}"`)
})

test.each(['https://ports.example.org', 'http://localhost:8760'])('but below %s', (portsUrl) => {
  expect(daemonOptions({ portsUrl }, {}).portsUrl).toBe(portsUrl)
})
