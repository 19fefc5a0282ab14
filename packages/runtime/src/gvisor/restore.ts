import { isDeepStrictEqual } from 'node:util'
import { type CheckpointSource, DriverError, type Sandbox, type SandboxSpec } from '../driver.ts'
import { RUNTIME_LIMITS } from '../limits.ts'
import { leafLimits } from './checkout.ts'
import { findDamage, readFacts } from './checkpoint-files.ts'
import { refuseIncompatible } from './compatible.ts'
import type { GvisorContext } from './context.ts'
import { identityOf } from './identity.ts'
import type { Instance } from './instance.ts'
import { launch } from './launch.ts'
import { sizesOf } from './sizing.ts'

/** Starts a copy of what was saved; `ahead` it is held until it is told who it is. */
export async function restoreCopy(
  context: GvisorContext,
  checkpoint: CheckpointSource,
  { ahead, signal }: { readonly ahead: boolean; readonly signal: AbortSignal },
): Promise<Instance> {
  const { directory, layers, limits } = checkpoint
  refuseIncompatible(await readFacts(directory), await context.runtimeFacts(), checkpoint)
  const { disks } = sizesOf(limits)
  const options = { layers, limits: leafLimits(checkpoint), disks, checkpoint, ahead, signal }
  return await launch(context, options).catch(async (error) => {
    signal.throwIfAborted()
    throw (await findDamage(directory)) ?? error
  })
}

/** Tells a copy who it is, before anything else can happen to it. A failure or an abort ends it. */
export async function goOn(
  instance: Instance,
  spec: SandboxSpec,
  signal: AbortSignal,
): Promise<Sandbox> {
  const { guest, checkpoint } = instance
  const wait = { signal, timeoutMs: RUNTIME_LIMITS.checkoutMs }
  try {
    signal.throwIfAborted()
    refuseOther(checkpoint, spec)
    await Promise.all([
      // It lies there when the agent wakes.
      guest.thaw(identityOf(spec), wait),
      // One that a daemon leaves held is nobody's.
      instance.letGo().then(() => instance.save({ owner: { spec, checkedOutAtMs: Date.now() } })),
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

function refuseOther(checkpoint: CheckpointSource | undefined, spec: SandboxSpec): void {
  const same =
    isDeepStrictEqual(spec.layers, checkpoint?.layers) &&
    isDeepStrictEqual(spec.limits, checkpoint?.limits)
  if (!same) throw new Error('layers or limits are others than those it was restored with')
}
