/** Resolves as soon as the condition holds; the event loop turns meanwhile, the clock does not. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  turnsMax = 20_000,
): Promise<void> {
  for (let turn = 0; turn < turnsMax; turn++) {
    if (await holds()) return
    await new Promise((resolve) => setImmediate(resolve))
  }
  throw new Error(`it never came to this: ${what}`)
}
