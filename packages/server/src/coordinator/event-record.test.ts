import type { RunEvent } from '@sandlot/core'
import { APPEND_BYTES_MAX } from '@sandlot/engine'
import { expect, test } from 'vitest'
import { createBatchDecoder, encodeBatch } from './event-record.ts'

function events(count: number, length: number): RunEvent[] {
  return Array.from({ length: count }, (_, i) => ({
    ...{ type: 'worker_lost', worker: `${i}`, cause: 'ü'.repeat(length), atMs: i },
  }))
}

test('a batch of any size is read as it was written', () => {
  for (const batch of [events(1, 1), events(1_000, 10), events(40, 20_000)]) {
    const records = encodeBatch(batch)
    for (const record of records) expect(record.length).toBeLessThan(APPEND_BYTES_MAX)
    const decode = createBatchDecoder()
    expect(records.flatMap(decode)).toEqual(batch)
  }
  expect(encodeBatch([])).toEqual([])
})

test('a batch whose end was never written is left out', () => {
  const decode = createBatchDecoder()
  const cut = encodeBatch(events(40, 20_000)).slice(0, -1)
  expect(cut.length).toBeGreaterThan(2)
  const next = events(2, 1)
  expect([...cut, ...encodeBatch(next)].flatMap(decode)).toEqual(next)
})

test('what has no mark is refused', () => {
  expect(() => createBatchDecoder()(Buffer.from('[]'))).toThrow(/another program/)
})
