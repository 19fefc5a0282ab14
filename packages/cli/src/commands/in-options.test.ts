import { SandlotError } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { inOptions } from './in-options.ts'

const FIELDS = { 'resources.memory': '--memory', env: '--env', network: '--allow' }

test.each([
  ['body.resources.memory: "lots" is not a size', '--memory: "lots" is not a size'],
  ['resources.memory: a limit of 1 MiB', '--memory: a limit of 1 MiB'],
  [
    'body.env.A: holds a NUL; body.network.allow.0: no',
    '--env A: holds a NUL; --allow allow.0: no',
  ],
  ['body.lifetime: shorter than 1s', 'body.lifetime: shorter than 1s'],
])('%s', (message, said) => {
  const error = inOptions(new SandlotError('invalid_request', message), FIELDS) as SandlotError
  expect(error).toMatchObject({ code: 'invalid_request', message: said })
})

test('another error stays as it is', () => {
  const error = new SandlotError('capacity', 'env: none')
  expect(inOptions(error, FIELDS)).toBe(error)
})
