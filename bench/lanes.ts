import type { BenchContext } from './bench.ts'

/** Works through all items, so many at a time. */
export async function inLanes<T>(
  items: readonly T[],
  count: number,
  { signal }: Pick<BenchContext, 'signal'>,
  work: (item: T) => Promise<void>,
): Promise<void> {
  let next = 0
  const lane = async () => {
    while (next < items.length) {
      signal.throwIfAborted()
      await work(items[next++] as T)
    }
  }
  await Promise.all(Array.from({ length: count }, lane))
}
