/** Resolves as soon as the condition holds. The clock of the test stands still meanwhile, unless the condition moves it. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const startedMs = performance.now()
  for (let turn = 0; !(await holds()); turn++) {
    if (performance.now() - startedMs > GIVE_UP_MS)
      throw new Error(`it never came to this: ${what}`)
    // At first every turn of the event loop, then seldom enough to leave the machine to what is waited for.
    await new Promise<void>((resolve) => {
      if (turn < TURNS) setImmediate(resolve)
      else setTimeout(resolve, 1)
    })
  }
}

const TURNS = 1_000
const GIVE_UP_MS = 50_000
