import type { Sandbox } from './driver.ts'
import type { Fate } from './fate.ts'

/** What `recover` found of sandboxes with an owner; blanks and half-made ones are removed without a word. */
export interface Recovery {
  /** Their agents answered; what the driver stored at checkout is in `spec`. */
  readonly adopted: readonly Sandbox[]
  /** They died while no daemon was there, or did not answer; they are removed, and this is their fate. */
  readonly ended: readonly EndedSandbox[]
  /** Files that should have said whose a sandbox was, and can't be read: what they were of is removed. */
  readonly unreadable: readonly string[]
}

export interface EndedSandbox {
  readonly id: string
  readonly hostId: string
  readonly fate: Fate
}
