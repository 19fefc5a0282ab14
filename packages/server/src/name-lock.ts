/** One after another for each name; different names side by side. */
export interface NameLock {
  with<T>(name: string, work: () => Promise<T>): Promise<T>
}

export function createNameLock(): NameLock {
  const last = new Map<string, Promise<unknown>>()
  return {
    with(name, work) {
      const before = last.get(name) ?? Promise.resolve()
      const result = before.then(work, work)
      const settled = result.then(
        () => {},
        () => {},
      )
      last.set(name, settled)
      void settled.then(() => {
        if (last.get(name) === settled) last.delete(name)
      })
      return result
    },
  }
}
