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
