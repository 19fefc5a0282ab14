import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createHeap } from './heap.ts'

interface Item {
  readonly id: number
  readonly value: number
  place: number
}

function valueHeap() {
  return createHeap<Item>({
    before: (a, b) => (a.value === b.value ? a.id < b.id : a.value < b.value),
    place: (item) => item.place,
    setPlace: (item, place) => {
      item.place = place
    },
  })
}

test('gives its items in order, whatever was removed from its middle', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.integer({ max: 20 }), fc.boolean())), (draws) => {
      const heap = valueHeap()
      const items = draws.map(([value], id): Item => ({ id, value, place: -1 }))
      for (const item of items) heap.push(item)
      const kept = items.filter((_, i) => draws[i]?.[1])
      for (const item of items) if (!kept.includes(item)) heap.remove(item)
      const sorted = kept.toSorted((a, b) => a.value - b.value || a.id - b.id)
      const taken: Item[] = []
      for (let next = heap.peek(); next; next = heap.peek()) {
        heap.remove(next)
        taken.push(next)
      }
      expect(taken).toEqual(sorted)
      expect(items.every(({ place }) => place === -1)).toBe(true)
    }),
  )
})

test('refuses an item that is in a heap, and does not mind removing one that is not', () => {
  const heap = valueHeap()
  const item: Item = { id: 1, value: 1, place: -1 }
  heap.remove(item)
  heap.push(item)
  expect(() => heap.push(item)).toThrow('in a heap already')
  expect(heap.size).toBe(1)
})
