import { ImageError } from './image-error.ts'

/** What a caller of a build brings. */
export interface BuildWait {
  /** Gets the lines for a person who waits. */
  readonly onLog?: ((line: string) => void) | undefined
  /** Gets what the programs of the build printed, line by line. */
  readonly onDetail?: ((line: string) => void) | undefined
  /** Runs a function of the caller's, and resolves when it has done what it should. `signal` aborts when nobody needs it any more. */
  readonly onFunction?:
    | ((call: FunctionCall, wait: { readonly signal: AbortSignal }) => Promise<void>)
    | undefined
  readonly signal?: AbortSignal | undefined
}

export interface FunctionCall {
  readonly key: string
  /** By what the caller finds it. */
  readonly call?: number
  /** Where it is to work. */
  readonly sandbox: string
}

export interface BuildRun {
  readonly signal: AbortSignal
  readonly log: (line: string) => void
  readonly detail: (line: string) => void
  /**
   * Has the one who waits the longest run a function. Where he leaves meanwhile, or it fails, which is his failure alone, it is false as long
   * as another waits. Fails with the last one's error.
   */
  readonly callFunction: (call: FunctionCall) => Promise<boolean>
}

interface Running<T> {
  readonly controller: AbortController
  /** Each with what ends his wait alone. */
  readonly waiters: Map<BuildWait, (error: unknown) => void>
  readonly result: Promise<T>
  /** It fails of what is the failure of those alone who wait already: nobody joins any more. */
  isOver: boolean
}

/**
 * One build a key, however many wait for it. A caller that is aborted leaves; the build is aborted with the last of them, and
 * that last one hears of it when everything has been cleaned up.
 */
export class SharedBuilds<T> {
  readonly #running = new Map<string, Running<T>>()

  async run(key: string, wait: BuildWait, build: (run: BuildRun) => Promise<T>): Promise<T> {
    wait.signal?.throwIfAborted()
    let running = this.#running.get(key)
    while (running && (running.isOver || running.controller.signal.aborted)) {
      await running.result.catch(() => {})
      wait.signal?.throwIfAborted()
      running = this.#running.get(key)
    }
    running ??= this.#start(key, build)
    return await this.#join(running, wait)
  }

  /** Aborts what runs and waits for its end. */
  async close(reason: unknown): Promise<void> {
    const all = [...this.#running.values()]
    for (const running of all) running.controller.abort(reason)
    await Promise.allSettled(all.map((running) => running.result))
  }

  #start(key: string, build: (run: BuildRun) => Promise<T>): Running<T> {
    const controller = new AbortController()
    const waiters: Running<T>['waiters'] = new Map()
    const log = (line: string): void => {
      for (const waiter of waiters.keys()) waiter.onLog?.(line)
    }
    const detail = (line: string): void => {
      for (const waiter of waiters.keys()) waiter.onDetail?.(line)
    }
    const { signal } = controller
    const callFunction = (call: FunctionCall) =>
      calledByOne(call, waiters, signal).catch((error) => {
        running.isOver = true
        throw error
      })
    // One turn later, so that the first waiter hears every line.
    const result = Promise.resolve()
      .then(() => build({ signal, log, detail, callFunction }))
      .finally(() => this.#running.delete(key))
    result.catch(() => {})
    const running: Running<T> = { controller, waiters, result, isOver: false }
    this.#running.set(key, running)
    return running
  }

  async #join(running: Running<T>, wait: BuildWait): Promise<T> {
    const left = Promise.withResolvers<never>()
    left.promise.catch(() => {})
    const leave = (): void => {
      running.waiters.delete(wait)
      const reason: unknown = wait.signal?.reason
      if (running.waiters.size > 0) {
        left.reject(reason)
        return
      }
      running.controller.abort(reason)
      running.result.catch(() => {}).then(() => left.reject(reason))
    }
    running.waiters.set(wait, left.reject)
    wait.signal?.addEventListener('abort', leave, { once: true })
    try {
      return await Promise.race([running.result, left.promise])
    } finally {
      wait.signal?.removeEventListener('abort', leave)
      running.waiters.delete(wait)
    }
  }
}

async function calledByOne(
  call: FunctionCall,
  waiters: Running<unknown>['waiters'],
  building: AbortSignal,
): Promise<boolean> {
  const able = () => [...waiters.keys()].filter(({ onFunction }) => onFunction)
  const [waiter] = able()
  if (!waiter?.onFunction) throw nobodyCan(call)
  const signal = waiter.signal ? AbortSignal.any([building, waiter.signal]) : building
  try {
    await waiter.onFunction(call, { signal })
    return true
  } catch (error) {
    building.throwIfAborted()
    if (!waiters.has(waiter)) return false
    // Who came meanwhile has a turn too.
    if (able().length === 1) throw error
    waiters.get(waiter)?.(error)
    waiters.delete(waiter)
    return false
  }
}

function nobodyCan({ key }: FunctionCall): ImageError {
  return new ImageError('image_build_failed', `Nobody who waits can run the function ${key}.`, {
    hint: 'A function is a step of what is asked for by itself, and of no other image that is copied from.',
  })
}
