import { describeLeftover, findLeftovers, helpersOf, type LeftoverScope } from '@sandlot/runtime'

/**
 * What a driver left on this machine, one line each, host helpers of this process included. A driver that was disposed leaves nothing.
 */
export async function findLeaks(scope: LeftoverScope): Promise<readonly string[]> {
  const found = [...(await findLeftovers(scope)), ...helpersOf(process.pid)]
  return found.map(describeLeftover)
}

/** Throws with all that was left. To be called after each test file that starts sandboxes. */
export async function expectNoLeaks(scope: LeftoverScope): Promise<void> {
  const leaks = await findLeaks(scope)
  if (leaks.length > 0) throw new Error(`left behind:\n${leaks.join('\n')}`)
}
