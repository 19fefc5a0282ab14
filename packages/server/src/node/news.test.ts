import { expect, test } from 'vitest'
import { News } from './news.ts'

test('news is heard from its first reader on', async () => {
  const news = new News<number>()
  let heard = false
  void news.heard.then(() => (heard = true))
  news.tell(1)
  await new Promise(setImmediate)
  expect(heard).toBe(false)
  const reading = new AbortController()
  const read = news.read(reading.signal)[Symbol.asyncIterator]()
  await new Promise(setImmediate)
  expect(heard).toBe(true)
  news.tell(2)
  expect(await read.next()).toEqual({ value: 2, done: false })
  reading.abort()
})
