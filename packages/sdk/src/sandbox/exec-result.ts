import type { ExecEnd } from '@sandlot/protocol'

/** How a command ended and what it printed. A command that fails is a result, never an exception. */
export interface ExecResult extends Omit<ExecEnd, 'stdout' | 'stderr'> {
  /** Text of the output; bytes that are not UTF-8 are replaced. */
  readonly stdout: string
  readonly stderr: string
  /** The same as bytes: the first and the last 512 KiB of a flood. */
  readonly stdoutBytes: Uint8Array
  readonly stderrBytes: Uint8Array
  /** Bytes of a flood that were not kept, between head and tail. */
  readonly stdoutDroppedBytes: number
  readonly stderrDroppedBytes: number
}

/** A piece of output as it came. */
export interface ExecChunk {
  readonly channel: 'stdout' | 'stderr'
  readonly bytes: Uint8Array
  /** Position of the first byte in everything the command printed on this channel. */
  readonly offset: number
  /** Bytes before this piece that nobody read in time. */
  readonly droppedBytes: number
  /** The bytes as UTF-8 text; characters that are cut between two pieces are put together. */
  readonly text: string
}
