/** Resolves when the condition holds; fails when it doesn't for long. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + 50_000
  while (!(await condition())) {
    if (performance.now() > deadlineMs) throw new Error(`still not: ${condition}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
