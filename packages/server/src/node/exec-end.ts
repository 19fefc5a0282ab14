import type { ExecLimit } from '@sandlot/protocol'

/** Exactly one of `exitCode` and `signal` is a value, the other null. */
export interface NodeExecEnd {
  readonly exec: string
  readonly exitCode: number | null
  readonly signal: number | null
  readonly timedOut: boolean
  readonly killed: boolean
  readonly durationMs: number
  /** Head and tail joined; `droppedBytes` of each channel lie between. */
  readonly stdout: Uint8Array
  readonly stderr: Uint8Array
  readonly stdoutTotalBytes: number
  readonly stdoutDroppedBytes: number
  readonly stderrTotalBytes: number
  readonly stderrDroppedBytes: number
  /** Processes that it started and that still run. */
  readonly left: number
  /** Limits that were met while it ran. */
  readonly limits: readonly ExecLimit[]
}
