/** Kills at random instants, by seed. */
import { killAnySandbox } from './sandboxes.ts'

export interface Targets {
  killDaemon(): Promise<void>
  killClient(which: number): Promise<void>
  /** One in which a function runs. False where there is none. */
  killContainer(): Promise<boolean>
  /** The daemon's host helper, where it has one. False where none runs. */
  killHelper?(): boolean
  /** Nothing is to be killed any more. */
  isCalm(): boolean
  /** Where sandboxes can be killed from outside. */
  readonly sandboxesIn?: string
}

export interface Kills {
  readonly daemon: number
  readonly client: number
  readonly container: number
  readonly helper: number
  readonly sandbox: number
  /** Which. */
  readonly sandboxes: ReadonlySet<string>
}

/** An episode that held three workers that died is a failure of its own: so often none of them dies. */
const CLIENT_KILLS_MAX = 2
const CONTAINER_KILLS_MAX = 2
/** Each may cost an episode an attempt, of which it has a few more. */
const DAEMON_KILLS_MAX = 4
/** What it had under way fails: starts, and what is held and waits. */
const HELPER_KILLS_MAX = 3
const PAUSE_MS = { least: 100, most: 2_000 }

export async function killAtRandom(
  targets: Targets,
  random: () => number,
  over: AbortSignal,
): Promise<Kills> {
  const sandboxes = new Set<string>()
  const kills = { daemon: 0, client: 0, container: 0, helper: 0, sandbox: 0 }
  while (!over.aborted && !targets.isCalm()) {
    await pause(PAUSE_MS.least + random() * (PAUSE_MS.most - PAUSE_MS.least), over)
    // Where no sandbox can be killed from outside the first lots are all there are.
    const lot = random() * (targets.sandboxesIn === undefined ? 0.4 : 1)
    if (over.aborted || targets.isCalm()) break
    if (lot < 0.15 && kills.daemon < DAEMON_KILLS_MAX) {
      await targets.killDaemon()
      kills.daemon += 1
    } else if (lot < 0.3 && kills.client < CLIENT_KILLS_MAX) {
      await targets.killClient(kills.client)
      kills.client += 1
    } else if (lot < 0.4 && kills.container < CONTAINER_KILLS_MAX) {
      if (await targets.killContainer()) kills.container += 1
    } else if (lot < 0.5 && targets.killHelper && kills.helper < HELPER_KILLS_MAX) {
      if (targets.killHelper()) kills.helper += 1
    } else if (targets.sandboxesIn !== undefined) {
      const killed = await killAnySandbox(targets.sandboxesIn, random)
      if (killed === undefined) continue
      kills.sandbox += 1
      sandboxes.add(killed)
    }
  }
  if (Object.values(kills).every((count) => count === 0)) {
    throw new Error('nothing was killed before the calm, so nothing is shown: take another seed')
  }
  return { ...kills, sandboxes }
}

function pause(ms: number, over: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    over.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}
