import type { Engine } from '@sandlot/engine'

/** The same engine; how long its writes take to be durable is told. */
export function timedEngine(
  engine: Engine,
  told: (primitive: 'log' | 'kv', elapsedMs: number) => void,
): Engine {
  const { log, kv, queue, blobs, bus } = engine
  const timed = async <T>(primitive: 'log' | 'kv', write: Promise<T>): Promise<T> => {
    const startedMs = performance.now()
    const result = await write
    told(primitive, performance.now() - startedMs)
    return result
  }
  return {
    log: {
      append: (...given) => timed('log', log.append(...given)),
      read: (...given) => log.read(...given),
      find: (...given) => log.find(...given),
      tail: (...given) => log.tail(...given),
      head: (...given) => log.head(...given),
      checkpoint: (...given) => log.checkpoint(...given),
      latestCheckpoint: (...given) => log.latestCheckpoint(...given),
      trim: (...given) => log.trim(...given),
      list: (...given) => log.list(...given),
      delete: (...given) => log.delete(...given),
    },
    kv: {
      get: (...given) => kv.get(...given),
      put: (...given) => timed('kv', kv.put(...given)),
      delete: (...given) => kv.delete(...given),
      list: (...given) => kv.list(...given),
      watch: (...given) => kv.watch(...given),
    },
    queue,
    blobs,
    bus,
    backup: (...given) => engine.backup(...given),
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  }
}
