import type { SandboxFate, Usage } from '@sandlot/core'
import { SandlotError } from '@sandlot/protocol'
import type { SandboxEnded } from '../node/port.ts'
import type { RunRecord } from './run-record.ts'

/** The node's words for an ending, as core knows them. `stopped` is by a person: the coordinator's own release is told apart before. */
const CAUSES: Readonly<Record<SandboxEnded['kind'], SandboxFate['cause']>> = {
  stopped: 'stopped',
  oom_limit: 'oom_limit',
  oom_host: 'oom_host',
  expired: 'lifetime',
  protocol: 'lost',
  lost: 'lost',
}

export function fateOf(
  ended: SandboxEnded,
  { specification: { grade } }: Pick<RunRecord, 'specification'>,
): SandboxFate {
  const apart = grade !== null && grade.in !== 'same'
  return {
    cause: CAUSES[ended.kind],
    evidence: ended.detail,
    usage: usageOf(ended),
    ...(apart && !ended.gradeOpened ? { beforeGrader: true } : {}),
  }
}

export function usageOf({ usage }: SandboxEnded): Usage {
  const { cpuMs, memoryPeakBytes, diskBytes } = usage
  return { cpuMs, memoryPeakBytes, diskBytes, networkBytes: 0 }
}

/** How the sandbox ended, where an error of the node says that it did. */
export function endingIn(error: unknown): SandboxEnded | undefined {
  if (!(error instanceof SandlotError)) return undefined
  if (error.code !== 'sandbox_gone' && error.code !== 'sandbox_lost') return undefined
  return error.details?.ending as SandboxEnded | undefined
}
