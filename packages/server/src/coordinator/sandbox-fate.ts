import type { SandboxFate, Usage } from '@sandlot/core'
import { SandlotError } from '@sandlot/protocol'
import type { SandboxEnded } from '../node/port.ts'
import type { RunRecord } from './run-record.ts'

/** What the coordinator says when it releases a sandbox. The node keeps it, so that a person's stop can be told from it. */
export const RELEASED = 'its attempt is over'

/** Whether the sandbox ended because this coordinator, or one before it, released it; or never was. */
export function isReleased({ asked, detail, project }: SandboxEnded): boolean {
  return asked && (detail === RELEASED || project === '')
}

/** The node's words for an ending, as core knows them. `stopped` is by a person: see `isReleased`. */
const CAUSES: Readonly<Record<SandboxEnded['kind'], SandboxFate['cause']>> = {
  stopped: 'stopped',
  oom_limit: 'oom_limit',
  oom_host: 'oom_host',
  expired: 'lifetime',
  shutdown: 'lost',
  protocol: 'lost',
  lost: 'lost',
}

export function fateOf(
  ended: SandboxEnded,
  { specification: { grade } }: Pick<RunRecord, 'specification'>,
): SandboxFate {
  // A grader that never ran is not to blame, and neither is a command that runs what the episode left.
  const never = grade !== null && grade.in !== 'same' && !ended.gradeOpened
  const loads = grade?.kind === 'command' && grade.in !== 'clean'
  return {
    cause: CAUSES[ended.kind],
    evidence: ended.detail,
    usage: usageOf(ended),
    ...(never || loads ? { byEpisode: true } : {}),
  }
}

/** What became of one that was released, where that is more than its end. */
export function fateOfReleased(ended: SandboxEnded): SandboxFate | undefined {
  if (!ended.cutOff) return undefined
  const evidence = 'its connections broke off with the daemon that passed them on'
  return { cause: 'cut_off', evidence, usage: usageOf(ended) }
}

export function usageOf({ usage, metered }: SandboxEnded): Usage {
  const { cpuMs, memoryPeakBytes, diskBytes, networkBytes } = usage
  const cost = metered?.micros == null ? {} : { costMicros: metered.micros }
  return { cpuMs, memoryPeakBytes, diskBytes, networkBytes, ...cost }
}

/** How the sandbox ended, where an error of the node says that it did. */
export function endingIn(error: unknown): SandboxEnded | undefined {
  if (!(error instanceof SandlotError)) return undefined
  if (error.code !== 'sandbox_gone' && error.code !== 'sandbox_lost') return undefined
  return error.details?.ending as SandboxEnded | undefined
}
