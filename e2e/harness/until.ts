const LOOK_MS = 20
const PATIENCE_MS = 60_000

export interface UntilOptions {
  /** Default: a minute. */
  readonly patienceMs?: number
  /** Between two looks, milliseconds. `OFTEN_MS` for what is there only for a moment. Default: 20. */
  readonly everyMs?: number
}

/** For what passes: a part of the shortest time that it is there, on the fastest machine. */
export const OFTEN_MS = 1

/** Resolves with the first truthy answer; fails when none comes for long. */
export async function until<T>(
  what: string,
  look: () => T | Promise<T>,
  { patienceMs = PATIENCE_MS, everyMs = LOOK_MS }: UntilOptions = {},
): Promise<NonNullable<T>> {
  const endMs = performance.now() + patienceMs
  for (;;) {
    const answer = await look()
    if (answer) return answer
    if (performance.now() > endMs) throw new Error(`in vain: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, everyMs))
  }
}
