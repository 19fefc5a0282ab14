import { GuestError } from '@sandlot/runtime'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { toSandlotError } from './failure.ts'

test.each([
  [new GuestError('not_found', '/nope', { errno: 2 }), '/nope: no such file or directory'],
  [new GuestError('io', '/disk', { errno: 5 }), '/disk: i/o error'],
  [
    new GuestError('not_found', 'x: no such file (ENOENT)', { errno: 2 }),
    'x: no such file (ENOENT)',
  ],
  [new GuestError('is_directory', 'it is a directory'), 'it is a directory'],
])('a failed system call says why, once', (error, message) => {
  expect(toSandlotError(error).message).toBe(message)
})

test('what is stored and can’t be read is no mistake of the caller’s', () => {
  const { error } = z.array(z.string()).safeParse({})
  expect(toSandlotError(error)).toMatchObject({ code: 'internal', cause: error })
})
