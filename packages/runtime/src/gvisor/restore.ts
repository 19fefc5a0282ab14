import { DriverError, type Sandbox, type SandboxSpec } from '../driver.ts'
import { RUNTIME_LIMITS } from '../limits.ts'
import { leafLimits } from './checkout.ts'
import { findDamage, readFacts } from './checkpoint-files.ts'
import { refuseIncompatible } from './compatible.ts'
import type { GvisorContext } from './context.ts'
import { identityOf } from './identity.ts'
import { launch } from './launch.ts'

/** Starts a copy of what was saved, and tells it who it is before anything else can happen to it. */
export async function restore(
  context: GvisorContext,
  spec: SandboxSpec,
  directory: string,
  signal: AbortSignal,
): Promise<Sandbox> {
  const facts = await readFacts(directory)
  refuseIncompatible(facts, await context.runtimeFacts(), spec)
  const { layers } = spec
  const options = { layers, limits: leafLimits(spec), checkpoint: directory, ahead: false, signal }
  const instance = await launch(context, options).catch(async (error) => {
    signal.throwIfAborted()
    throw (await findDamage(directory)) ?? error
  })
  const wait = { signal, timeoutMs: RUNTIME_LIMITS.checkoutMs }
  try {
    await Promise.all([
      instance.guest.thaw(identityOf(spec), wait),
      instance.save({ owner: { spec, checkedOutAtMs: Date.now() } }),
    ])
    return instance.sandbox()
  } catch (error) {
    const fate = await instance.end('stop')
    signal.throwIfAborted()
    const message = error instanceof Error ? error.message : String(error)
    throw new DriverError('create_failed', `the restored sandbox did not go on: ${message}`, {
      hint: 'try again; when it fails always, take the snapshot again',
      cause: error,
      fate,
    })
  }
}
