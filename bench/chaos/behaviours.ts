/** What the episodes of the chaos bench do, and what that is in truth: an outcome with its reward. */
export interface Behaviour {
  /** As `told` writes a row. */
  readonly truth: string
  /** Of so many episodes one does it. */
  readonly share: number
  /** Where it can be done. Default: on every driver. */
  readonly on?: 'gvisor'
  /** It needs the machine, which nothing inside of gVisor reaches. */
  readonly outside?: true
  /** Whose episodes can do it. Default: all. */
  readonly by?: readonly ChaosWorker[]
}

/** Who runs episodes: processes of users, containers of the daemon, or the daemon itself, which runs a command or several steps. */
export const CHAOS_WORKERS = ['clients', 'functions', 'programs'] as const
export type ChaosWorker = (typeof CHAOS_WORKERS)[number]

const CODE = ['clients', 'functions'] as const
const PROGRAMS = ['programs'] as const

export const BEHAVIOURS = {
  'answers rightly': { truth: 'graded 1', share: 40 },
  'answers wrongly': { truth: 'graded 0', share: 10 },
  'does nothing': { truth: 'graded 0', share: 5 },
  throws: { truth: 'episode_error null', share: 4, by: CODE },
  'uses up its turns': { truth: 'limit 1', share: 3, by: CODE },
  'loops for ever': { truth: 'agent_timeout 0', share: 3 },
  'answers rightly, then loops': { truth: 'agent_timeout 1', share: 3 },
  'never returns': { truth: 'agent_timeout 0', share: 2, by: CODE },
  'loses its sandbox': { truth: 'infra_lost null', share: 2, outside: true },
  'loses its sandbox and says nothing': {
    truth: 'infra_lost null',
    share: 2,
    outside: true,
    by: CODE,
  },
  'eats its memory': { truth: 'sandbox_oom 0', share: 2 },
  'asks its model': { truth: 'graded 1', share: 10, on: 'gvisor', by: PROGRAMS },
  'fails its model': { truth: 'model_error null', share: 3, by: CODE },
  'breaks its grader': { truth: 'grade_error null', share: 3 },
  'holds up its grader': { truth: 'grade_timeout null', share: 2 },
  'multiplies without end': { truth: 'graded 1', share: 2, on: 'gvisor' },
  'fills its disk': { truth: 'graded 1', share: 2, on: 'gvisor' },
  'kills all it sees': { truth: 'graded 1', share: 3, on: 'gvisor' },
  'can not be run': { truth: 'episode_error null', share: 3, by: PROGRAMS },
  'takes its steps': { truth: 'graded 1', share: 15, by: PROGRAMS },
  'falls short in a step': { truth: 'graded 0', share: 4, by: PROGRAMS },
  'uses up a step': { truth: 'limit 1', share: 3, by: PROGRAMS },
} as const satisfies Record<string, Behaviour>

export type BehaviourName = keyof typeof BEHAVIOURS
export type ChaosDriver = 'fake' | 'gvisor'

export interface ChaosTask {
  readonly id: string
  readonly does: BehaviourName
}

/** So many tasks, mixed in an order that the random numbers give; each behaviour at least once. */
export function chaosTasks(
  { driver, worker }: { readonly driver: ChaosDriver; readonly worker: ChaosWorker },
  count: number,
  random: () => number,
): ChaosTask[] {
  const entries = Object.entries(BEHAVIOURS) as [BehaviourName, Behaviour][]
  const isInside = driver === 'gvisor' && worker !== 'clients'
  const possible = entries.filter(
    ([, { on = driver, outside, by = CHAOS_WORKERS }]) =>
      on === driver && !(outside && isInside) && by.includes(worker),
  )
  const lots = possible.flatMap(([name, { share }]) => Array.from({ length: share }, () => name))
  const does = Array.from({ length: count }, (_, n): BehaviourName => {
    return possible[n]?.[0] ?? lots[Math.floor(random() * lots.length)] ?? 'does nothing'
  })
  return does
    .map((name) => ({ name, place: random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ name }, n) => ({ id: `${worker}/${n}`, does: name }))
}

export function truthOf({ does }: Pick<ChaosTask, 'does'>): string {
  return BEHAVIOURS[does].truth
}
