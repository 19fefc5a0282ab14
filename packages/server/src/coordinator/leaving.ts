import type { Left } from '@sandlot/core'
import { deadline } from '@sandlot/engine'
import { LIMITS } from '@sandlot/protocol'
import { sandboxId, snapshotId } from './ids.ts'
import { COORDINATOR_LIMITS } from './limits.ts'
import { type EffectOf, isStopping, messageOf, type SandboxWork } from './sandboxes.ts'

/** Keeps the files of sandboxes, to be looked into when these are gone. */
export interface SandboxKeeper {
  /** A snapshot of this id; asked again it is known. */
  keep(request: KeepRequest, options: { readonly signal: AbortSignal }): Promise<void>
  /** Forgets all snapshots of a run. Idempotent. */
  forget(project: string, isOfRun: (snapshot: string) => boolean): Promise<void>
}

export interface KeepRequest {
  readonly project: string
  readonly sandbox: string
  readonly snapshot: string
  readonly run: string
  readonly key: string
}

/**
 * Takes out of a sandbox what its episode leaves. Never fails but with the coordinator's end: what can't be had is told in the row, and
 * a sandbox that dies meanwhile says so when it is released.
 */
export async function takeWhatIsLeft(
  work: Pick<
    SandboxWork,
    'record' | 'node' | 'keeper' | 'keepBlob' | 'leaves' | 'signal' | 'actor'
  >,
  effect: EffectOf<'release_sandbox'>,
): Promise<Left> {
  const { record, node, keeper, leaves, signal, keepBlob } = work
  const { artifacts: patterns = [] } = record.specification
  const sandbox = sandboxId(record.id, effect)
  const until = AbortSignal.any([signal, leaves.hurried])
  const leftOut: string[] = []
  const left = {
    artifacts: [] as Left['artifacts'][number][],
    leftOut,
    kept: null as string | null,
  }
  const tell = (what: string, error: unknown) => {
    if (isStopping(error, signal)) throw error
    leftOut.push(`${what}: ${messageOf(error)}`)
  }
  if (effect.leaves?.artifacts) {
    try {
      const collected = await node.collectFiles(
        { sandbox, patterns },
        { signal: until, timeoutMs: COORDINATOR_LIMITS.collectMs },
      )
      leftOut.push(...collected.leftOut)
      for (const artifact of collected.artifacts) {
        await keepBlob(artifact.blob)
        left.artifacts.push(artifact)
      }
    } catch (error) {
      tell('its files could not be collected', error)
    }
  }
  if (effect.leaves?.snapshot) {
    const snapshot = snapshotId(record.id, effect)
    using due = deadline(COORDINATOR_LIMITS.keepMs, until)
    try {
      const { project, name: run } = record
      const key = work.actor.run.live.get(effect.episode)?.key ?? ''
      await keeper.keep({ project, sandbox, snapshot, run, key }, due)
      left.kept = snapshot
    } catch (error) {
      tell('its sandbox could not be kept', error)
    }
  }
  return { ...left, leftOut: leftOut.slice(0, LIMITS.leftOut) }
}
