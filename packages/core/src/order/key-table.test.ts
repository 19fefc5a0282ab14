import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createKeyTable } from './key-table.ts'

test('knows what was added, by key and content, also after it was saved', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.string(), { maxLength: 300 }), (keys) => {
      const table = createKeyTable()
      for (const key of keys) {
        expect(table.check(key, 'content')).toBe('new')
        table.add(key, 'content')
      }
      const again = createKeyTable(table.save())
      expect(again.save()).toBe(table.save())
      for (const [position, key] of keys.entries()) {
        for (const each of [table, again]) {
          expect(each.check(key, 'content')).toBe('known')
          expect(each.check(key, 'other')).toBe('conflict')
          expect(each.find(key)).toBe(position)
        }
      }
      expect(again.size).toBe(keys.length)
    }),
  )
})

test('tells 100,000 keys of the usual shapes apart', () => {
  const table = createKeyTable()
  const taken: string[] = []
  for (let i = 0; i < 50_000; i++) {
    for (const key of [String(i), `task-${i.toString(16)}/epoch`]) {
      if (table.check(key, key) !== 'new') taken.push(key)
      table.add(key, key)
    }
  }
  expect(taken).toEqual([])
  expect(table.size).toBe(100_000)
  expect(table.save().length).toBeLessThan(17 * 100_000)
})
