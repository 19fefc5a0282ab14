/** Time since now, and processor time of this process since now, when called. */
export function stopwatch(): () => { readonly elapsedMs: number; readonly processorMs: number } {
  const beginMs = performance.now()
  const before = process.cpuUsage()
  return () => {
    const { user, system } = process.cpuUsage(before)
    return { elapsedMs: performance.now() - beginMs, processorMs: (user + system) / 1000 }
  }
}
