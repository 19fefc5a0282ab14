/**
 * What is on a machine of sandboxes, over all daemons that there are and were: whose it is, and what is nobody's.
 *
 * | the lock of its state directory | its state file names an owner, and something of it runs | then it is |
 * |---|---|---|
 * | held by a living process | | that daemon's: its own reconciling looks after it |
 * | free | yes | `waiting`: the next start of that daemon adopts it, or its agent ends it after its time without a daemon |
 * | free | no | `left`: nobody will ever ask for it |
 */
import { rm, rmdir } from 'node:fs/promises'
import { basename } from 'node:path'
import {
  emptyDirectory,
  sandboxesDirectory,
  sandboxPaths,
  sharedRoot,
  stateLock,
} from '../gvisor/paths.ts'
import { loadState } from '../gvisor/state.ts'
import { tryFileLock } from '../image/file-lock.ts'
import { leavesOf, membersOf, removeParent } from './cgroup-leaves.ts'
import { findLeftovers, removeLeftovers } from './find.ts'
import { heldLocks } from './held-files.ts'
import type { Leftover, LeftoverScope } from './leftover.ts'
import { orphanHelpers } from './processes.ts'
import { findStaging } from './staging.ts'
import { allStateDirectories, stateDirectoriesIn } from './state-directories.ts'

export interface SurveyOptions {
  /** Only what daemons of this run directory have. Default: the whole machine. */
  readonly runDirectory?: string
  /** Directories that daemons keep, where they are known. What is half made in them is looked for. */
  readonly dataDirectories: readonly string[]
}

export interface SurveyedDriver {
  readonly stateDirectory: string
  /** The process that holds its lock: what there is of it is that one's. */
  readonly owner?: number
  /** Sandboxes that somebody was given and that live on without their daemon. */
  readonly waiting: readonly string[]
  readonly left: readonly Leftover[]
  /** Removes what was left, and also what waits where `waiting` is set. What is still there. Nothing, where a daemon began meanwhile. */
  readonly remove: (what: { readonly waiting: boolean }) => Promise<readonly Leftover[]>
}

export interface Survey {
  readonly drivers: readonly SurveyedDriver[]
  /** Of no driver: host helpers without their daemon, and what is half made in data directories without one. */
  readonly others: readonly Leftover[]
}

/** Looks at everything and changes nothing. To be run as root: whose a thing is can't be seen otherwise. */
export async function surveyMachine(options: SurveyOptions): Promise<Survey> {
  const { runDirectory, dataDirectories } = options
  const held = heldLocks()
  const directories =
    runDirectory === undefined ? allStateDirectories(held) : stateDirectoriesIn(runDirectory)
  const drivers: SurveyedDriver[] = []
  for (const stateDirectory of directories) {
    const owner = ownerOf(stateDirectory, held)
    drivers.push(
      owner === undefined ? await unowned({ stateDirectory }) : owned(stateDirectory, owner),
    )
  }
  const staging = await Promise.all(dataDirectories.map((each) => findStaging(each, held)))
  const helpers = runDirectory === undefined ? orphanHelpers() : []
  return { drivers, others: [...helpers, ...staging.flat()] }
}

/** A state directory whose folder is gone is known by the name of its cgroups alone. */
function ownerOf(stateDirectory: string, held: ReadonlyMap<string, number>): number | undefined {
  const owner = held.get(stateLock(stateDirectory))
  if (owner !== undefined) return owner
  const ending = `/${basename(stateDirectory)}/lock`
  for (const [path, pid] of held) if (path.endsWith(ending)) return pid
  return undefined
}

function owned(stateDirectory: string, owner: number): SurveyedDriver {
  return { stateDirectory, owner, waiting: [], left: [], remove: async () => [] }
}

async function unowned(scope: LeftoverScope): Promise<SurveyedDriver> {
  const { stateDirectory } = scope
  const waiting = await waitingIn(stateDirectory)
  const all = await findLeftovers(scope)
  const isLeft = ({ hostId }: Leftover) => hostId === undefined || !waiting.has(hostId)
  return {
    stateDirectory,
    waiting: [...waiting],
    left: all.filter(isLeft),
    remove: async ({ waiting: waitingToo }) => {
      using lock = lockOf(stateDirectory)
      if (lock === undefined) return []
      const found = await findLeftovers(scope)
      const stuck = await removeLeftovers(waitingToo ? found : found.filter(isLeft))
      if (stuck.length === 0 && (waitingToo || waiting.size === 0)) await removeAll(stateDirectory)
      return stuck
    },
  }
}

/** Host ids of sandboxes that have an owner and of which something runs. */
async function waitingIn(stateDirectory: string): Promise<ReadonlySet<string>> {
  const waiting = new Set<string>()
  for (const leaf of await leavesOf(basename(stateDirectory))) {
    const { hostId } = leaf
    const state = await loadState(sandboxPaths(stateDirectory, hostId))
    if (state?.owner && (await membersOf(leaf)).length > 0) waiting.add(hostId)
  }
  return waiting
}

/** So that no daemon begins there meanwhile. Undefined where one has; without the folder there is nothing that it could lock. */
function lockOf(stateDirectory: string): Disposable | undefined {
  try {
    return tryFileLock(stateLock(stateDirectory))
  } catch {
    return { [Symbol.dispose]: () => {} }
  }
}

/** Nothing but what a driver makes there: the directory stays where somebody keeps something else in it. */
async function removeAll(stateDirectory: string): Promise<void> {
  await removeParent(basename(stateDirectory))
  const own = [sandboxesDirectory, sharedRoot, emptyDirectory].map((path) => path(stateDirectory))
  for (const path of own) await rm(path, { recursive: true, force: true })
  await rm(stateLock(stateDirectory), { force: true })
  await rmdir(stateDirectory).catch(() => {})
}
