import { getEventListeners } from 'node:events'
import { expect, test } from 'vitest'
import { onAbort } from './on-abort.ts'

test('calls back everybody who has not forgotten, once', () => {
  const controller = new AbortController()
  const called: string[] = []
  onAbort(controller.signal, () => called.push('a'))
  const forget = onAbort(controller.signal, () => called.push('b'))
  const same = () => called.push('c')
  onAbort(controller.signal, same)
  onAbort(controller.signal, same)
  forget()
  forget()
  controller.abort()
  expect(called).toEqual(['a', 'c', 'c'])
})

test('puts one listener on a signal, and takes it off with the last', () => {
  const { signal } = new AbortController()
  const forgets = Array.from({ length: 100 }, () => onAbort(signal, () => {}))
  expect(getEventListeners(signal, 'abort')).toHaveLength(1)
  for (const forget of forgets) forget()
  expect(getEventListeners(signal, 'abort')).toHaveLength(0)
  onAbort(signal, () => {})
  expect(getEventListeners(signal, 'abort')).toHaveLength(1)
})

test('lets a callback forget another while they are called', () => {
  const controller = new AbortController()
  const called: string[] = []
  let forget = () => {}
  onAbort(controller.signal, () => forget())
  forget = onAbort(controller.signal, () => called.push('forgotten'))
  controller.abort()
  expect(called).toEqual([])
})
