import { newId } from '@sandlot/protocol'
import type { SandboxLimits, Wait } from '../driver.ts'
import { agentImage } from './agent-image.ts'
import { GvisorDriver } from './driver.ts'
import type { GvisorOptions } from './options.ts'

const LIMITS: SandboxLimits = {
  memoryBytes: 64 * 2 ** 20,
  cpus: 1,
  pidsMax: 64,
  diskBytes: 16 * 2 ** 20,
  nofileMax: 1_024,
}
/** Should this process die in the middle, the sandbox ends by itself. */
const DETACHED_MS = 10_000

/**
 * Starts a blank, dresses it by a hot mount and stops it: what no version string tells. Leaves nothing but the agent's image in
 * the data directory. Fails as `createBlank` and `checkout` do. The state directory must be its own.
 */
export async function trySandbox(options: GvisorOptions, wait: Wait = {}): Promise<void> {
  await using driver = new GvisorDriver(options)
  const blank = await driver.createBlank(wait)
  // Any layer will do; the agent's own image is always there.
  const layer = { digest: 'sha256:trial', path: await agentImage(options) }
  const spec = { id: newId('sandbox'), hostname: 'trial', limits: LIMITS, detachedMs: DETACHED_MS }
  const sandbox = await driver.checkout(blank, { ...spec, layers: [layer] }, wait)
  await driver.stop(sandbox)
}
