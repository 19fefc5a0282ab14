import { type GradeSpec, groupSpec, hedgeSpec } from '@sandlot/protocol'
import { membersMax } from '../group/group.ts'
import { compileRun, type RunPolicy } from '../run/policy.ts'
import type { Random } from './random.ts'

/** What one seed makes of the world: how large it is and how much goes wrong in it. */
export interface Scenario {
  readonly policy: RunPolicy
  readonly tasks: number
  /** Of tasks that name their groups: one after the other, or in turn. */
  readonly groupsInTurn: boolean
  readonly nodes: number
  readonly capacity: boolean
  readonly workers: number
  readonly slots: number
  /** Medians; the agent's and the grader's times are heavy-tailed around them. */
  readonly agentMs: number
  readonly gradeMs: number
  readonly faults: Faults
  readonly userPauses: boolean
  readonly userCancels: boolean
}

/** Probabilities, each per chance it has. */
export interface Faults {
  readonly messageLost: number
  readonly messageLate: number
  readonly messageDoubled: number
  readonly createFails: number
  readonly createHangs: number
  readonly sandboxDies: number
  readonly nodeDies: number
  readonly workerDies: number
  readonly disconnects: number
  readonly wedges: number
  readonly coordinatorDies: number
  readonly crashesAtFlush: number
  readonly diskStalls: number
  readonly graderSlow: number
  readonly graderFails: number
  readonly agentMisbehaves: number
  readonly modelFails: number
}

export function drawScenario(random: Random): Scenario {
  const calm = random.chance(0.1)
  const draw = (most: number) => (calm || random.chance(0.4) ? 0 : random.next() * most)
  const faults: Faults = {
    messageLost: draw(0.1),
    messageLate: draw(0.1),
    messageDoubled: draw(0.2),
    createFails: draw(0.1),
    createHangs: draw(0.05),
    sandboxDies: draw(0.15),
    nodeDies: draw(0.5),
    workerDies: draw(0.5),
    disconnects: draw(0.6),
    wedges: draw(0.02),
    coordinatorDies: draw(0.6),
    crashesAtFlush: draw(0.03),
    diskStalls: draw(0.05),
    graderSlow: draw(0.1),
    graderFails: draw(0.15),
    agentMisbehaves: draw(0.2),
    modelFails: draw(0.15),
  }
  const policy = drawPolicy(random)
  const episodes = 4 + random.below(28)
  const members = policy.group?.by === 'prompt' ? membersMax(policy.group) : 1
  return {
    policy,
    tasks: Math.ceil(episodes / members),
    groupsInTurn: random.chance(0.5),
    nodes: 1 + random.below(3),
    capacity: random.chance(0.5),
    workers: 1 + random.below(3),
    slots: 1 + random.below(8),
    agentMs: random.pick([200, 2_000, 20_000]),
    gradeMs: random.pick([100, 1_000, 5_000]),
    faults,
    userPauses: !calm && random.chance(0.2),
    userCancels: !calm && random.chance(0.15),
  }
}

/** Small ones: what can go wrong in a group shows with three members. */
function drawGroup(random: Random) {
  if (random.chance(0.4)) return {}
  const size = 1 + random.below(4)
  const need = 1 + random.below(size)
  const cut = need < size && random.chance(0.6)
  const group = {
    by: random.pick(['prompt', 'name'] as const),
    ...{ size, need },
    extra: random.below(3),
    ...(cut ? { cut: { after: random.pick([500, 5_000, 30_000, 'p50', 'p90'] as const) } } : {}),
    ...(random.chance(0.4) ? { maxLag: random.below(3) } : {}),
  }
  return { group: groupSpec.parse(group) }
}

function drawHedge(random: Random) {
  if (random.chance(0.65)) return {}
  const after = random.pick([100, 300, 3_000, 'p50', 'p90'] as const)
  const phases = random.pick([
    ['create', 'setup'],
    ['setup'],
    ['agent'],
    ['create', 'agent'],
  ] as const)
  return { hedge: hedgeSpec.parse({ after, phases }) }
}

function drawActions(random: Random) {
  if (random.chance(0.2)) return { policy: { episode_error: 'retry', limit: 'mask' } } as const
  return random.chance(0.2) ? ({ policy: { episode_error: 'drop-group' } } as const) : {}
}

function drawPolicy(random: Random): RunPolicy {
  const grade: GradeSpec | null = random.pick([
    null,
    { kind: 'worker', in: 'world' },
    { kind: 'command', command: ['true'], in: 'world' },
  ] as const satisfies (GradeSpec | null)[])
  return compileRun(
    {
      concurrency: 1 + random.below(10),
      ...(random.chance(0.2) ? { ahead: 1 + random.below(5) } : {}),
      timeout: {
        create: 20_000,
        setup: 30_000,
        agent: random.pick([10_000, 60_000]),
        model: 15_000,
        grade: 20_000,
        ...(random.chance(0.2) ? { total: random.pick([30_000, 120_000]) } : {}),
      },
      retry: {
        infra: random.below(4),
        model: random.below(3),
        grade: random.below(3),
        timeout: random.chance(0.2) ? 1 : 0,
      },
      ...(random.chance(0.4) ? { setup: ['true'] } : {}),
      ...drawActions(random),
      ...drawGroup(random),
      ...drawHedge(random),
      ...(grade === null ? {} : { grade }),
      ...(random.chance(0.3) ? { artifacts: ['/collected'] } : {}),
      ...(random.chance(0.3)
        ? { keep: { of: random.pick(['failed', 'all'] as const), max: 1 + random.below(4) } }
        : {}),
      ...(random.chance(0.3) ? { program: { command: ['true'] } } : {}),
    },
    { run: 'rn_simulationsimulation', from: 'sha256:simulated' },
  )
}
