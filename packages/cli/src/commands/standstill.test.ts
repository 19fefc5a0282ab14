import { expect, test } from 'vitest'
import { standstillOf } from './standstill.ts'

const health = { ok: true, version: '1', state: 'serving' } as const

test('a daemon that drains, and one whose machine is full, begin nothing', () => {
  expect(standstillOf(health)).toBeUndefined()
  expect(standstillOf({ ...health, state: 'draining' })).toContain('draining')
  expect(standstillOf({ ...health, nothingNew: 'the disk is full' })).toBe(
    'no sandbox is begun now: the disk is full',
  )
})
