import { drawMs, type Latency, parseLatency } from '@sandlot/core/latency'
import type { Random } from '@sandlot/core/random'
import { SandlotError } from '@sandlot/protocol'

/** What a user gives is read once; how long each takes is drawn from then on. */
export function durations(option: string, text: string): (random: Random) => number {
  const latency = read(option, text)
  return (random) => drawMs(latency, random)
}

/** Lets so much real time pass. Rejects with the signal's reason. */
export async function pass(ms: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted()
  await new Promise<void>((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(
      () => {
        signal?.removeEventListener('abort', abort)
        resolve()
      },
      Math.min(ms, TIMER_MS_MAX),
    )
    signal?.addEventListener('abort', abort, { once: true })
  })
}

function read(option: string, text: string): Latency {
  try {
    return parseLatency(text)
  } catch (cause) {
    throw new SandlotError('invalid_request', `${option}: ${(cause as Error).message}`, { cause })
  }
}

/** What a timer takes. */
const TIMER_MS_MAX = 2 ** 31 - 1
