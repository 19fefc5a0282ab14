import type { Clock } from '@sandlot/engine'

/**
 * Simulates SIGKILL of a coordinator: the `at`-th call through any of its wrappers never returns, nor does any later one. With
 * `before` that call did not happen, with `after` it did, and only its answer is lost.
 */
export interface CrashSwitch {
  /** Calls so far. */
  readonly calls: number
  /** Resolves at the crash, when the last call has had its effect. */
  readonly dead: Promise<'dead'>
  wrap<T extends object>(target: T): T
  /** What is asked after the crash is never answered: nobody of that process waits in vain, and takes the machine's time. */
  ask<T>(question: () => Promise<T>): Promise<T>
  /** Timers die with their process. */
  wrapClock(clock: Clock): Clock
}

export type CrashMode = 'before' | 'after'

const NEVER = new Promise<never>(() => {})

export function createCrashSwitch(at: number, mode: CrashMode): CrashSwitch {
  const { promise: dead, resolve } = Promise.withResolvers<'dead'>()
  let calls = 0

  function call(target: object, method: (...args: unknown[]) => unknown, args: unknown[]) {
    if (STREAMS.has(method.name))
      return stream(method.apply(target, args) as AsyncIterable<unknown>)
    calls += 1
    if (calls > at) return NEVER
    if (calls < at) return method.apply(target, args)
    if (mode === 'before') resolve('dead')
    else {
      Promise.resolve(method.apply(target, args)).then(
        () => resolve('dead'),
        () => resolve('dead'),
      )
    }
    return NEVER
  }

  async function* stream(inner: AsyncIterable<unknown>) {
    for await (const item of inner) {
      if (calls >= at) await NEVER
      yield item
    }
  }

  function wrap<T extends object>(target: T): T {
    return new Proxy(target, {
      get(_, property) {
        const value: unknown = Reflect.get(target, property, target)
        if (typeof value === 'function') {
          return (...args: unknown[]) => call(target, value as () => unknown, args)
        }
        return typeof value === 'object' && value !== null && PARTS.has(property)
          ? wrap(value)
          : value
      },
    })
  }

  return {
    get calls() {
      return calls
    },
    dead,
    wrap,
    ask: (question) => (calls < at ? question() : NEVER),
    wrapClock: (clock) => ({
      now: () => clock.now(),
      after: (delayMs, callback) =>
        clock.after(delayMs, () => {
          if (calls < at) callback()
        }),
    }),
  }
}

const STREAMS = new Set(['endings', 'modelCalls', 'tail', 'watch', 'subscribe'])
const PARTS: ReadonlySet<string | symbol> = new Set(['log', 'kv', 'blobs', 'queue', 'bus'])
