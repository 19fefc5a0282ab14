/** A binary heap that can also remove from its middle: each item carries its own place. */
export interface Heap<T> {
  readonly size: number
  peek(): T | undefined
  push(item: T): void
  /** Does nothing where the item is not in the heap. */
  remove(item: T): void
}

export interface HeapRules<T> {
  /** A total order: no two items are equal, so that the order never depends on history. */
  before(a: T, b: T): boolean
  place(item: T): number
  setPlace(item: T, place: number): void
}

export function createHeap<T>(rules: HeapRules<T>): Heap<T> {
  const items: T[] = []

  function put(item: T, place: number): void {
    items[place] = item
    rules.setPlace(item, place)
  }

  function rise(item: T, from: number): void {
    let place = from
    while (place > 0) {
      const above = (place - 1) >> 1
      const parent = items[above] as T
      if (!rules.before(item, parent)) break
      put(parent, place)
      place = above
    }
    put(item, place)
  }

  function sink(item: T, from: number): void {
    let place = from
    for (;;) {
      let below = 2 * place + 1
      if (below >= items.length) break
      if (below + 1 < items.length && rules.before(items[below + 1] as T, items[below] as T)) {
        below++
      }
      const child = items[below] as T
      if (!rules.before(child, item)) break
      put(child, place)
      place = below
    }
    put(item, place)
  }

  return {
    get size() {
      return items.length
    },
    peek: () => items[0],
    push(item) {
      if (rules.place(item) !== -1) throw new Error('the item is in a heap already')
      items.push(item)
      rise(item, items.length - 1)
    },
    remove(item) {
      const place = rules.place(item)
      if (place === -1) return
      rules.setPlace(item, -1)
      const last = items.pop() as T
      if (last === item) return
      if (place > 0 && rules.before(last, items[(place - 1) >> 1] as T)) rise(last, place)
      else sink(last, place)
    },
  }
}
