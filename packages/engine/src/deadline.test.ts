import { afterEach, expect, test, vi } from 'vitest'
import { deadline } from './deadline.ts'

afterEach(() => void vi.useRealTimers())

test('aborts when its time is over, or with whoever else it was given', () => {
  vi.useFakeTimers()
  using late = deadline(50)
  vi.advanceTimersByTime(49)
  expect(late.signal.aborted).toBe(false)
  vi.advanceTimersByTime(1)
  expect(late.signal.reason).toMatchObject({
    name: 'TimeoutError',
    message: 'not done within 50 ms',
  })

  const other = new AbortController()
  using early = deadline(50, undefined, other.signal)
  other.abort('no more')
  expect(early.signal.reason).toBe('no more')
  using born = deadline(50, other.signal)
  expect(born.signal.reason).toBe('no more')
})

test('without a time it ends with the others alone', () => {
  vi.useFakeTimers()
  const other = new AbortController()
  using endless = deadline(undefined, other.signal)
  expect(vi.getTimerCount()).toBe(0)
  other.abort('no more')
  expect(endless.signal.reason).toBe('no more')
})

test('disposed of it holds nothing and never aborts', () => {
  vi.useFakeTimers()
  const other = new AbortController()
  const over = deadline(50, other.signal)
  over[Symbol.dispose]()
  expect(vi.getTimerCount()).toBe(0)
  other.abort()
  expect(over.signal.aborted).toBe(false)
})
