import type { Clock } from '@sandlot/engine'
import type { Logger } from 'pino'
import { SERVER_LIMITS } from '../limits.ts'
import type { Entry } from './entry.ts'
import type { MemoryRoom, Promised } from './memory-room.ts'

interface Watching {
  readonly entries: ReadonlyMap<string, Entry>
  readonly clock: Clock
  readonly log: Logger
}

/** Looks at the machine's memory now, then again and again until disposed: the longer a look takes, the more rarely. */
export async function watchMemory(
  memory: MemoryRoom,
  { entries, clock, log }: Watching,
): Promise<Disposable> {
  memory.promised = () => promisedTo(entries)
  let cancel = () => {}
  let over = false
  const look = async (): Promise<void> => {
    const wasLow = memory.isLow
    const startedMs = performance.now()
    await memory.look().catch((err) => log.warn({ err }, 'the memory could not be looked at'))
    if (memory.isLow && !wasLow) log.error(`${memory.describe()}: no sandbox is begun`)
    if (!memory.isLow && wasLow) log.info('there is memory for sandboxes again')
    const tookMs = performance.now() - startedMs
    const { memoryEveryMs, memoryLookShare } = SERVER_LIMITS
    const pauseMs = Math.max(memoryEveryMs, tookMs * memoryLookShare)
    if (!over) cancel = clock.after(pauseMs, () => void look())
  }
  await look()
  return {
    [Symbol.dispose]: () => {
      over = true
      cancel()
    },
  }
}

function* promisedTo(entries: ReadonlyMap<string, Entry>): Iterable<Promised> {
  for (const { room, record, sandbox } of entries.values()) {
    if (room) yield { requestBytes: record.resources.memory.request, sandbox }
  }
}
