import { setTimeout as delay } from 'node:timers/promises'

/** Waits; throws the reason of the signal when it is aborted. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => undefined)
  signal.throwIfAborted()
}
