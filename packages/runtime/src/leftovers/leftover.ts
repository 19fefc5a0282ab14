/**
 * What sandboxes have on a machine beside what they were given, and who may take it away.
 *
 * A **finder** knows one kind of thing. It looks, changes nothing, and never says whether a thing is still needed: that is decided by
 * the host id that the thing names. A thing of a sandbox that lives is no leftover; whoever asks knows which live (a driver by its own
 * register, the command line by the lock that a living driver holds on its state directory).
 *
 * To look for one kind of thing more, write a finder and add it to `FINDERS` in `find.ts`: the daemon, `sandlot doctor leaks` and
 * the leak check of the tests all use that list.
 */

export const LEFTOVER_KINDS = [
  /** Of the runtime, or of a guest. */
  'process',
  /** One leaf of a sandbox, all controllers together. */
  'cgroup',
  'mount',
  /** A network namespace with the interface of one sandbox, or the rules for all of a driver. */
  'network',
  /** A sandbox's own folder: state file, FIFOs, control socket, logs. */
  'directory',
  /** Names of writable layers on the disk, which only a start has. */
  'disk',
  /** What an image, a blob or saved memory is made in. */
  'staging',
] as const
export type LeftoverKind = (typeof LEFTOVER_KINDS)[number]

/** One thing that was found. */
export interface Leftover {
  readonly kind: LeftoverKind
  /** A path, or a process with its command. One line for a person. */
  readonly what: string
  /** The sandbox that it is of, where that can be told. */
  readonly hostId?: string
  /** Takes it away if it is still what was found. True once it is gone. Idempotent. */
  readonly remove: () => Promise<boolean>
}

/** Where one driver works. */
export interface LeftoverScope {
  /** Its last name is that of its cgroups. */
  readonly stateDirectory: string
  /** Where files of its sandboxes have a name while they start. Default: not looked at. */
  readonly dataDirectory?: string
}

export type Finder = (scope: LeftoverScope) => Promise<readonly Leftover[]>
