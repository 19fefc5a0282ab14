import { expect, test } from 'vitest'
import { openReaderWatch } from './reader-watch.ts'

test('a reader waits until its page is there, and is busy until it asks again', () => {
  const watch = openReaderWatch()
  const first = watch.asks('', 1_000)
  expect(watch.untold(1_400)).toEqual({ waitedMs: 400, busyMs: 0, taken: 0, pages: 0 })
  first.served({ records: 2, cursor: 'b' })
  first.over(1_500)
  expect(watch.untold(9_000)).toMatchObject({ waitedMs: 500, busyMs: 0, taken: 2 })
  const second = watch.asks('b', 3_500)
  second.served({ records: 1, cursor: 'c' })
  second.over(3_500)
  expect(watch.take(3_500)).toEqual({ waitedMs: 500, busyMs: 2_000, taken: 3, pages: 2 })
  expect(watch.untold(9_000)).toEqual({ waitedMs: 0, busyMs: 0, taken: 0, pages: 0 })
})

test('of two that wait the time counts once, and what is read again is not taken', () => {
  const watch = openReaderWatch()
  const first = watch.asks('', 0)
  const second = watch.asks('', 500)
  first.served({ records: 4, cursor: 'd' })
  first.over(1_000)
  second.served({ records: 4, cursor: 'd' })
  second.over(2_000)
  expect(watch.take(2_000)).toEqual({ waitedMs: 2_000, busyMs: 0, taken: 4, pages: 1 })
})

test('little is told with what comes next, and an empty page is none', () => {
  const watch = openReaderWatch()
  const asked = watch.asks('', 0)
  asked.served({ records: 0, cursor: '' })
  asked.over(900)
  expect(watch.take(900)).toBeUndefined()
  watch.asks('', 1_000).over(1_000)
  expect(watch.take(1_000)).toEqual({ waitedMs: 900, busyMs: 100, taken: 0, pages: 0 })
})
