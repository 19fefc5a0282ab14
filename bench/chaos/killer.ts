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

type Kind = 'daemon' | 'client' | 'container' | 'helper' | 'sandbox'

/**
 * How often at the most, and which share of the kills. An episode that held three workers that died is a failure of its own, so no
 * worker dies so often. A daemon's death may cost an episode an attempt, of which it has a few more; a helper's, what it had under way.
 */
const KINDS: Readonly<Record<Kind, { readonly most: number; readonly share: number }>> = {
  daemon: { most: 4, share: 15 },
  client: { most: 2, share: 15 },
  container: { most: 2, share: 10 },
  helper: { most: 3, share: 10 },
  sandbox: { most: Number.POSITIVE_INFINITY, share: 50 },
}
/** Without sandboxes to kill, most is over in seconds. */
const PAUSE_MS = { least: 100, most: 2_000, mostWithoutSandboxes: 500 }

/** At first one of each kind that can be, then by lot. */
export async function killAtRandom(
  targets: Targets,
  random: () => number,
  over: AbortSignal,
): Promise<Kills> {
  const { sandboxesIn, killHelper } = targets
  const sandboxes = new Set<string>()
  const kills = { daemon: 0, client: 0, container: 0, helper: 0, sandbox: 0 }
  const kill: Readonly<Partial<Record<Kind, () => boolean | Promise<boolean>>>> = {
    daemon: () => targets.killDaemon().then(() => true),
    client: () => targets.killClient(kills.client).then(() => true),
    container: () => targets.killContainer(),
    ...(killHelper ? { helper: () => killHelper() } : {}),
    ...(sandboxesIn === undefined
      ? {}
      : {
          sandbox: async () => {
            const killed = await killAnySandbox(sandboxesIn, random)
            if (killed !== undefined) sandboxes.add(killed)
            return killed !== undefined
          },
        }),
  }
  const possible = Object.keys(kill) as Kind[]
  const mostMs = kill.sandbox ? PAUSE_MS.most : PAUSE_MS.mostWithoutSandboxes
  const first = inAnyOrder(possible, random)
  while (!over.aborted && !targets.isCalm()) {
    await pause(PAUSE_MS.least + random() * (mostMs - PAUSE_MS.least), over)
    if (over.aborted || targets.isCalm()) break
    const kind = first[0] ?? drawn(possible, random)
    if (kills[kind] >= KINDS[kind].most || !(await kill[kind]?.())) continue
    kills[kind] += 1
    if (first[0] === kind) first.shift()
  }
  if (first.length > 0) {
    throw new Error(`no ${first.join(', ')} was killed before the calm: too little is shown`)
  }
  return { ...kills, sandboxes }
}

function drawn(kinds: readonly Kind[], random: () => number): Kind {
  const lots = kinds.flatMap((kind) => Array.from({ length: KINDS[kind].share }, () => kind))
  return lots[Math.floor(random() * lots.length)] as Kind
}

function inAnyOrder(kinds: readonly Kind[], random: () => number): Kind[] {
  return kinds
    .map((kind) => ({ kind, place: random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ kind }) => kind)
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
