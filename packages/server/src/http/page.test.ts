import { expect, test } from 'vitest'
import { pageOf } from './page.ts'

const all = ['b', 'a', 'd', 'c'].map((id, index) => ({ id, createdAtMs: index < 2 ? 5 : 7 }))
const ids = (items: readonly { id: string }[]) => items.map(({ id }) => id).join('')

test('pages are whole, oldest first, and end', () => {
  const first = pageOf(all, { limit: 3 })
  expect(ids(first.items)).toBe('abc')
  const second = pageOf(all, { limit: 3, after: first.next ?? '' })
  expect([ids(second.items), second.next]).toEqual(['d', null])
})

test('a page goes on where an item stood that is gone', () => {
  const { next } = pageOf(all, { limit: 2 })
  const without = all.filter(({ id }) => id !== 'b')
  expect(ids(pageOf(without, { limit: 2, after: next ?? '' }).items)).toBe('cd')
})
