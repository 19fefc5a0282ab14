/** Works through all items with at most `atOnce` under way. The first failure rejects once the others are done. */
export async function inBatches<T>(
  items: Iterable<T>,
  atOnce: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const queue = [...items]
  const failures: unknown[] = []
  const worker = async () => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) {
      await work(item).catch((error) => failures.push(error))
    }
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, queue.length) }, worker))
  if (failures.length > 0) throw failures[0]
}
