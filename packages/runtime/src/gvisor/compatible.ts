import { isDeepStrictEqual } from 'node:util'
import { type CheckpointFacts, type CheckpointSource, DriverError } from '../driver.ts'
import type { RuntimeFacts } from './runtime-facts.ts'

/**
 * Counts up when a checkpoint of before can't be restored any more: when mounts, flags or capabilities of every sandbox change,
 * which the runtime compares.
 */
export const CHECKPOINT_FORMAT = 2

/** Throws what differs between what a checkpoint needs and what is here. */
export function refuseIncompatible(
  facts: CheckpointFacts,
  machine: RuntimeFacts,
  wanted: Omit<CheckpointSource, 'directory'>,
): void {
  refuse('version of the runtime', facts.runtime, machine.runtime)
  refuse('guest agent', facts.agent, machine.agent)
  const here = new Set(machine.cpuFeatures.split(','))
  const missing = facts.cpuFeatures.split(',').filter((feature) => !here.has(feature))
  if (missing.length > 0) {
    throw incompatible(`this processor lacks ${missing.join(', ')}`)
  }
  const layers = wanted.layers.map(({ digest }) => digest)
  if (!isDeepStrictEqual(layers, facts.layers)) throw incompatible('the layers are others')
  if (!isDeepStrictEqual(wanted.limits, facts.limits)) {
    throw incompatible('the limits are others; those of a checkpoint are fixed')
  }
}

/** Throws where nothing else of a checkpoint can be believed. */
export function refuseOtherFormat(format: number): void {
  refuse('format', String(format), String(CHECKPOINT_FORMAT))
}

function refuse(what: string, taken: string, here: string): void {
  if (taken !== here) throw incompatible(`${what}: taken with ${taken}, here is ${here}`)
}

function incompatible(detail: string): DriverError {
  return new DriverError(
    'snapshot_incompatible',
    `the checkpoint can't be restored here: ${detail}`,
    {
      hint: "take the snapshot again on this machine (prepare its template again), or start cold from its files: ifIncompatible 'cold', --or-cold",
    },
  )
}
