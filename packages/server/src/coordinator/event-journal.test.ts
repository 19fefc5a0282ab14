import type { RunEvent } from '@sandlot/core'
import { EngineError, type Log } from '@sandlot/engine'
import { expect, test } from 'vitest'
import { EventJournal } from './event-journal.ts'
import { createManualClock } from './simulated/clock.ts'
import { until } from './simulated/settle.ts'

const event: RunEvent = { type: 'tasks_closed', atMs: 0 }

/** A log whose appends are answered by the test. */
function setUp() {
  const appends: { records: number; answer(error?: unknown): void }[] = []
  const checkpoints: string[] = []
  const failures: unknown[] = []
  let position = 0
  const log = {
    append(_stream: string, records: readonly Uint8Array[], options: { expect: string }) {
      expect(options.expect).toBe(position === 0 ? 'start' : `p${position}`)
      return new Promise((resolve, reject) => {
        appends.push({
          records: records.length,
          answer(error) {
            if (error) return reject(error)
            position += records.length
            resolve({ position: `p${position}`, duplicates: [] })
          },
        })
      })
    },
    async checkpoint(_stream: string, at: string) {
      checkpoints.push(at)
    },
    async trim(_stream: string, at: string) {
      checkpoints.push(`trimmed ${at}`)
    },
  } as unknown as Log
  const clock = createManualClock()
  const journal = new EventJournal({
    ...{ log, clock, stream: 's', head: 'start', sinceCheckpointBytes: 0 },
    failed: (error) => failures.push(error),
  })
  const said: string[] = []
  const write = (name: string, more: { events?: RunEvent[]; state?: Uint8Array } = {}) =>
    journal.write({
      events: [event],
      ...more,
      durable: () => said.push(name),
      forgotten: () => said.push(`${name} forgotten`),
    })
  return { appends, checkpoints, failures, clock, journal, said, write }
}

test('batches gather while one append is under way, and are durable in order', async () => {
  const { appends, journal, said, write } = setUp()
  write('a')
  write('b')
  write('nothing', { events: [] })
  write('c')
  expect(appends.map(({ records }) => records)).toEqual([1])
  expect(journal.waitingBatches).toBe(4)
  appends[0]?.answer()
  await until('the next is appended', () => appends.length === 2)
  expect(said).toEqual(['a'])
  expect(appends[1]?.records).toBe(2)
  appends[1]?.answer()
  await until('all are durable', () => said.length === 4)
  expect(said).toEqual(['a', 'b', 'nothing', 'c'])
  expect([journal.waitingBatches, journal.waitingBytes]).toEqual([0, 0])
})

test('a full disk is waited for, anything else is the end', async () => {
  const { appends, failures, clock, said, write } = setUp()
  write('a')
  appends[0]?.answer(new EngineError('disk_full', 'full'))
  await until('it is tried again', () => {
    clock.advance(50)
    return appends.length === 2
  })
  appends[1]?.answer()
  await until('it is durable', () => said.length === 1)
  write('b')
  write('c')
  appends[2]?.answer(new EngineError('log_conflict', 'another writer'))
  await until('it has failed', () => failures.length === 1)
  write('d')
  expect(said).toEqual(['a', 'b forgotten', 'c forgotten', 'd forgotten'])
  expect(appends).toHaveLength(3)
})

test('a checkpoint stands at the end of its own batch, and is due by what was written', async () => {
  const { appends, checkpoints, journal, write, said } = setUp()
  expect(journal.isCheckpointDue(0)).toBe(false)
  const large = { events: Array(300_000).fill(event) as RunEvent[] }
  write('large', large)
  for (let at = 0; said.length === 0; at++) {
    await until('it is appended', () => appends.length > at || said.length > 0)
    appends[at]?.answer()
    await until('it goes on', () => appends.length > at + 1 || said.length > 0)
  }
  expect(journal.isCheckpointDue(0)).toBe(true)
  expect(journal.isCheckpointDue(2 ** 30)).toBe(false)
  const before = appends.length
  write('x')
  write('with state', { state: new Uint8Array([1]) })
  expect(journal.isCheckpointDue(0)).toBe(false)
  write('y')
  appends[before]?.answer()
  await until('the second is appended', () => appends.length === before + 2)
  // Not together with what comes after the state.
  expect(appends[before + 1]?.records).toBe(1)
  appends[before + 1]?.answer()
  await until('it is trimmed', () => checkpoints.length === 2)
  expect(checkpoints[1]).toBe(`trimmed ${checkpoints[0]}`)
})

test('closing forgets what waits, and waits for what is under way', async () => {
  const { appends, journal, said, write } = setUp()
  write('a')
  write('b')
  const closed = journal.close()
  expect(said).toEqual(['b forgotten'])
  appends[0]?.answer()
  await closed
  expect(said).toEqual(['b forgotten', 'a forgotten'])
})
