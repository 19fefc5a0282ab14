import { type PoolFigures, type PoolInput, simulatePool } from '@sandlot/core/sizing'
import { groupSpec, hedgeSpec } from '@sandlot/protocol'
import type { Bench } from '../bench.ts'
import type { Measured } from '../figure.ts'

const SEEDS = Array.from({ length: 9 }, (_, index) => index + 1)
const GROUPS = 64
const SIZE = 8
const EXTRA = 2

/** A batch of which the slowest of a hundred takes ten times the median. */
const BATCH = {
  tasks: GROUPS,
  agent: { kind: 'lognormal', medianMs: 60_000, sigma: 1 },
} as const satisfies Partial<PoolInput>

/** All of them at once, so that it is the tail that is waited for. */
const ALL = GROUPS * (SIZE + EXTRA)
/** Each slot has several, so that their order counts. */
const FEW = (GROUPS * SIZE) / 8

const whole = groupSpec.parse({ size: SIZE })
const cut = groupSpec.parse({ size: SIZE, extra: EXTRA, need: SIZE - 2, cut: { after: 'p90' } })
const hedge = hedgeSpec.parse({ after: 'p90', phases: ['agent'] })

/**
 * When so many of a batch's groups are complete, by core itself in simulated time: nothing of it depends on the machine, and a seed
 * gives the same again.
 */
export const tail: Bench = async () => {
  const waited = each({ ...BATCH, concurrency: ALL, group: whole })
  const cutOff = each({ ...BATCH, concurrency: ALL, group: cut })
  const hedged = each({ ...BATCH, concurrency: ALL, group: whole, hedge })
  const inTurn = each({ ...BATCH, concurrency: FEW, group: whole })
  const longest = each({ ...BATCH, concurrency: FEW, group: whole, expected: true })
  return [
    {
      ...completion('tail', 'p90', cutOff, waited),
      target: { of: 'ratio', atMost: 0.5 },
      note: `${GROUPS} groups of ${SIZE}, all at once; ${EXTRA} extra and a cut at p90 (need ${SIZE - 2}) against none`,
    },
    completion('tail.p50', 'p50', cutOff, waited),
    completion('tail.p99', 'p99', cutOff, waited),
    completion('tail.p100', 'p100', cutOff, waited),
    {
      ...completion('tail.hedged', 'p90', hedged, waited),
      note: 'a second attempt of an agent slower than p90, against none',
    },
    {
      ...completion('tail.longest', 'p100', longest, inTurn),
      note: `${FEW} slots, the longest expected first, against the order of submission`,
    },
    {
      name: 'tail.ideal',
      unit: 's',
      samples: longest.map(({ elapsedMs }) => elapsedMs / 1_000),
      reference: longest.map(idealSeconds),
      note: 'the same against all work shared evenly by the slots, which nothing can beat',
    },
    ...biasOf(cutOff),
  ]
}

function each(input: PoolInput): PoolFigures[] {
  return SEEDS.map((seed) => simulatePool({ ...input, seed }))
}

function completion(
  name: string,
  at: keyof PoolFigures['completionMs'],
  pools: readonly PoolFigures[],
  reference: readonly PoolFigures[],
): Measured {
  const seconds = (all: readonly PoolFigures[]) =>
    all.map(({ completionMs }) => completionMs[at] / 1_000)
  return { name, unit: 's', samples: seconds(pools), reference: seconds(reference) }
}

/** What it is paid with. */
function biasOf(pools: readonly PoolFigures[]): Measured[] {
  return [
    {
      name: 'tail.lost',
      unit: '%',
      samples: pools.map(({ bias }) => bias.lostShare * 100),
      note: 'members without a result that counts, the extra ones among them',
    },
    {
      name: 'tail.bias-reward',
      unit: '',
      samples: pools.map(({ bias }) => bias.rewardKept),
      reference: pools.map(({ bias }) => bias.rewardAll),
      note: 'mean reward of what counts, against that of all members: the slow are wrong more often',
    },
    {
      name: 'tail.bias-time',
      unit: 's',
      samples: pools.map(({ bias }) => bias.agentMsKept / 1_000),
      reference: pools.map(({ bias }) => bias.agentMsAll / 1_000),
      note: 'mean time of what counts, against that of all members',
    },
  ]
}

function idealSeconds({ bias, episodes, concurrency }: PoolFigures): number {
  return (bias.agentMsAll * episodes) / concurrency / 1_000
}
