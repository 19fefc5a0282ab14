import { GuestError } from '@sandlot/runtime'
import { expect, test } from 'vitest'
import { whyNotRead } from './collect-files.ts'

test.each([
  [new GuestError('permission', '/a'), "it can't be read (permission_denied)"],
  [new GuestError('io', '/a', { errno: 5 }), 'i/o error'],
  [new GuestError('io', '/a (EIO)'), '(EIO)'],
  [new GuestError('limit', 'too many files are open'), 'too many files are open'],
])('%s: its path is said once, and why it is left out', (error, why) => {
  expect(whyNotRead('/a', error)).toBe(why)
})
