/** An agent thinks where gold just types: it gets several times what gold needs. */
const FACTOR = 3
const LEAST_MS = 10_000
const MINUTE_MS = 60_000

/** From what gold needs, a time to give to agents: round, and never less than ten seconds. */
export function suggestTimeoutMs(goldP95Ms: number): number {
  const wanted = Math.max(LEAST_MS, goldP95Ms * FACTOR)
  const step = wanted <= MINUTE_MS ? 10_000 : wanted <= 10 * MINUTE_MS ? 30_000 : MINUTE_MS
  return Math.ceil(wanted / step) * step
}
