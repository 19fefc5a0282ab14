import type { BenchContext } from '../bench.ts'
import type { Api } from './api.ts'

const LOOK_MS = 5
const FULL_MS = 60_000

/** Resolves when as many blanks wait in the daemon's pool as should, or copies of saved memory, at least one. */
export async function poolFull(
  api: Api,
  { signal }: Pick<BenchContext, 'signal'>,
  of: 'blanks' | 'copies' = 'blanks',
): Promise<void> {
  const endMs = performance.now() + FULL_MS
  const gauge = (state: string) => api.gauge(`sandlot_pool_${of}{state="${state}"}`)
  const target = Math.max(1, await gauge('target'))
  while ((await gauge('ready')) < target) {
    signal.throwIfAborted()
    if (performance.now() > endMs) throw new Error(`the pool of ${of} does not fill`)
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
}
