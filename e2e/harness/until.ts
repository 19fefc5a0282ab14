const LOOK_MS = 20
const PATIENCE_MS = 60_000

/** Resolves with the first truthy answer; fails when none comes for long. */
export async function until<T>(
  what: string,
  look: () => T | Promise<T>,
  patienceMs = PATIENCE_MS,
): Promise<NonNullable<T>> {
  const endMs = performance.now() + patienceMs
  for (;;) {
    const answer = await look()
    if (answer) return answer
    if (performance.now() > endMs) throw new Error(`in vain: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
}
