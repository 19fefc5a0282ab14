import type { BenchContext } from '../bench.ts'
import type { Api } from './api.ts'

const LOOK_MS = 5
const FULL_MS = 60_000

/** Resolves when the daemon's pool of blanks is full and nothing is being started. */
export async function poolFull(api: Api, { signal }: Pick<BenchContext, 'signal'>): Promise<void> {
  const endMs = performance.now() + FULL_MS
  const target = await api.gauge('sandlot_pool_blanks{state="target"}')
  while ((await api.gauge('sandlot_pool_blanks{state="ready"}')) < target) {
    signal.throwIfAborted()
    if (performance.now() > endMs) throw new Error('the pool of blanks does not fill')
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
}
