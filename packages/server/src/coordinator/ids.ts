/**
 * Ids of a run's things. They are computed, not drawn: after a restart the same attempt has the same sandbox, lease and commands,
 * so that whoever is asked twice recognises it.
 */
import { ID_LENGTH, ID_PREFIXES } from '@sandlot/protocol'

export interface AttemptOf {
  readonly episode: number
  readonly attempt: number
}

/** `sb_` + 10 characters of the run + episode + attempt. */
export function sandboxId(run: string, { episode, attempt }: AttemptOf): string {
  return `${ID_PREFIXES.sandbox}_${runPart(run, 10)}${digits(episode, 6)}${digits(attempt, 4)}`
}

/** The snapshot of an attempt's sandbox. */
export function snapshotId(run: string, { episode, attempt }: AttemptOf): string {
  return `${ID_PREFIXES.snapshot}_${runPart(run, 10)}${digits(episode, 6)}${digits(attempt, 4)}`
}

/** Whether a snapshot may be one of this run's sandboxes. */
export function isSnapshotOf(run: string, snapshot: string): boolean {
  return labelOf(snapshot, ID_PREFIXES.snapshot)?.startsWith(runPart(run, 10)) === true
}

/** The attempt that a sandbox's id was computed for, if it is one of this run. */
export function attemptOfSandbox(run: string, sandbox: string): AttemptOf | undefined {
  const label = labelOf(sandbox, ID_PREFIXES.sandbox)
  if (label === undefined || !label.startsWith(runPart(run, 10))) return undefined
  return { episode: Number.parseInt(label.slice(10, 16), 36), attempt: number(label, 16) }
}

/** `wk_` + that of the run: the daemon is one worker of a run of programs, also after a restart. */
export function programWorkerId(run: string): string {
  return `${ID_PREFIXES.worker}_${runPart(run, ID_LENGTH)}`
}

/** `ls_` + episode + attempt + fencing token: says by itself what it is for. */
export function leaseId(of: AttemptOf & { readonly token: number }): string {
  return `${ID_PREFIXES.lease}_${digits(of.episode, 6)}${digits(of.attempt, 4)}${digits(of.token, 10)}`
}

export function attemptOfLease(
  lease: string,
): (AttemptOf & { readonly token: number }) | undefined {
  const label = labelOf(lease, ID_PREFIXES.lease)
  if (label === undefined) return undefined
  const of = {
    episode: Number.parseInt(label.slice(0, 6), 36),
    attempt: Number.parseInt(label.slice(6, 10), 36),
    token: number(label, 10),
  }
  return Object.values(of).every(Number.isSafeInteger) ? of : undefined
}

/** `ex_` + 8 characters of the run + token + which command of it. A token is never used twice in a run. */
export function execId(run: string, token: number, step: number): string {
  return `${ID_PREFIXES.exec}_${runPart(run, 8)}${digits(token, 10)}${digits(step, 2)}`
}

function runPart(run: string, length: number): string {
  return run.slice(ID_PREFIXES.run.length + 1, ID_PREFIXES.run.length + 1 + length)
}

function digits(value: number, length: number): string {
  const text = value.toString(36).padStart(length, '0')
  if (text.length > length) throw new RangeError(`${value} needs more than ${length} digits`)
  return text
}

function number(label: string, from: number): number {
  return Number.parseInt(label.slice(from), 36)
}

function labelOf(id: string, prefix: string): string | undefined {
  if (id.length !== prefix.length + 1 + ID_LENGTH || !id.startsWith(`${prefix}_`)) return undefined
  return id.slice(prefix.length + 1)
}
