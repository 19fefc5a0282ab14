import type { Engine } from '@sandlot/engine'

/** Counts the calls of an engine that have not come back: a test lets no time pass meanwhile, however slow its disk is. */
export function countPending(engine: Engine): { readonly engine: Engine; readonly calls: number } {
  let calls = 0

  function wrap<T extends object>(target: T): T {
    return new Proxy(target, {
      get(_, property) {
        const value: unknown = Reflect.get(target, property, target)
        if (typeof value === 'function') {
          return (...args: unknown[]) => counted(value.apply(target, args))
        }
        return typeof value === 'object' && value !== null && PARTS.has(property)
          ? wrap(value)
          : value
      },
    })
  }

  function counted(answer: unknown) {
    if (!(answer instanceof Promise)) return answer
    calls += 1
    const end = () => {
      calls -= 1
    }
    answer.then(end, end)
    return answer
  }

  return {
    engine: wrap(engine),
    get calls() {
      return calls
    },
  }
}

const PARTS: ReadonlySet<string | symbol> = new Set(['log', 'kv', 'blobs', 'queue', 'bus'])
