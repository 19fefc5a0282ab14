import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { type CheckpointSource, DriverError, type Sandbox, type SandboxSpec } from '../driver.ts'
import { RUNTIME_LIMITS } from '../limits.ts'
import { leafLimits } from './checkout.ts'
import { findDamage, readFacts } from './checkpoint-files.ts'
import { refuseIncompatible } from './compatible.ts'
import type { GvisorContext } from './context.ts'
import { identityOf } from './identity.ts'
import { IDENTITY_FILE } from './identity-image.ts'
import type { Instance } from './instance.ts'
import { launch } from './launch.ts'
import { sizesOf } from './sizing.ts'

/** Starts a copy of what was saved, or what was saved itself: under its own id it keeps what tells it from its copies. */
export async function restoreCopy(
  context: GvisorContext,
  checkpoint: CheckpointSource,
  options: {
    /** Whose it will be. Default: nobody's yet, and it is held. */
    readonly id?: string
    readonly signal: AbortSignal
  },
): Promise<Instance> {
  const { directory, layers, limits } = checkpoint
  const { id, signal } = options
  const facts = await readFacts(directory)
  refuseIncompatible(facts, await context.runtimeFacts(), checkpoint)
  const { disks } = sizesOf(limits)
  const identity = id === facts.sandbox ? { kept: join(directory, IDENTITY_FILE) } : 'drawn'
  const ahead = id === undefined
  const leaf = leafLimits(checkpoint)
  const launching = { layers, limits: leaf, disks, identity, checkpoint, ahead, signal } as const
  return await launch(context, launching).catch(async (error) => {
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
      // First: one that is held when its daemon dies must have no owner.
      instance.letGo(),
      guest.thaw(identityOf(spec), wait),
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

function refuseOther(checkpoint: CheckpointSource | undefined, spec: SandboxSpec): void {
  const same =
    isDeepStrictEqual(spec.layers, checkpoint?.layers) &&
    isDeepStrictEqual(spec.limits, checkpoint?.limits)
  if (!same) throw new Error('layers or limits are others than those it was restored with')
}
