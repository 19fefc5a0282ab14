import type { LimitingFactor, Saturation } from '@sandlot/protocol'
import { reportOf } from '../report/report.ts'
import type { UnrecordedGroup, UnrecordedRow } from '../run/effect.ts'
import { fateOf } from './fate.ts'
import { POOL_DEFAULTS, type PoolSetting } from './pool-setting.ts'
import { type BatchTaken, createPoolTrainer } from './pool-trainer.ts'
import { createPoolWorld, type PoolWorld } from './pool-world.ts'

/** What a pool came to, in simulated time. Shares are from 0 to 1. */
export interface PoolFigures {
  readonly concurrency: number
  readonly elapsedMs: number
  readonly episodes: number
  /** Complete groups; valid results where there are no groups. */
  readonly complete: number
  readonly failed: number
  /** When so many of them were there, in percent of the complete ones. */
  readonly completionMs: Readonly<Record<'p50' | 'p90' | 'p99' | 'p100', number>>
  /** From asking for a batch to the end of its step; null without a trainer. */
  readonly batchMs: { readonly count: number; readonly p50: number; readonly p90: number } | null
  readonly trainerWaitShare: number | null
  /** Of the slots, over all the time. */
  readonly idleShare: number
  /** Of the time that episodes held slots: waiting for the model. */
  readonly modelShare: number
  /** Members that were not waited for: of all of complete groups, and of their time. */
  readonly stragglers: { readonly share: number; readonly timeShare: number } | null
  /** By how many versions results lagged behind the policy, and how many were too old to be taken. */
  readonly lag: { readonly mean: number; readonly most: number; readonly dropped: number } | null
  readonly limitedMs: Readonly<Partial<Record<LimitingFactor, number>>>
  readonly balance: Saturation['balance']
  readonly bias: PoolBias
}

/** What those results are that count, against what all members would have given: a cut and extra members keep the quick. */
export interface PoolBias {
  /** Members without a result that counts. */
  readonly lostShare: number
  readonly rewardAll: number
  readonly rewardKept: number
  readonly agentMsAll: number
  readonly agentMsKept: number
}

export type PoolInput = Partial<PoolSetting> & Pick<PoolSetting, 'tasks' | 'concurrency' | 'agent'>

/** Beyond it a pool does not get anywhere: all attempts fail. */
const STEPS_PER_EPISODE = 20_000
const TASKS_PER_PUT = 5_000

/** A run in simulated time, decided by core itself: what a seed gives it gives again. */
export function simulatePool(input: PoolInput): PoolFigures {
  const setting: PoolSetting = { ...POOL_DEFAULTS, ...input }
  const kept = new Map<string, UnrecordedRow>()
  const counted: UnrecordedRow[] = []
  const completedMs: number[] = []
  let failed = 0

  const take = (rows: readonly UnrecordedRow[]) => {
    counted.push(...rows)
    completedMs.push(world.timeline.nowMs)
    if (trainer) trainer.put({ versions: rows.map(({ policyVersion }) => policyVersion) })
    else world.timeline.after(0, readAll)
  }
  const fail = () => {
    failed++
    if (trainer) trainer.pass()
    else world.timeline.after(0, readAll)
  }
  const readAll = () => {
    const { ended } = world.run.totals
    world.tell({ type: 'groups_read', groups: completedMs.length + failed })
    world.tell({ type: 'results_read', rows: ended })
  }
  const world: PoolWorld = createPoolWorld(setting, {
    row(row) {
      if (setting.group) kept.set(row.episode, row)
      else if (row.valid) take([row])
      else fail()
    },
    group({ state, episodes }: UnrecordedGroup) {
      if (state === 'complete') take(episodes.map((id) => kept.get(id) as UnrecordedRow))
      else fail()
    },
    finished: () => trainer?.end(),
  })
  const trainer =
    setting.trainer &&
    createPoolTrainer({
      ...{
        setting: setting.trainer,
        seed: setting.seed,
        timeline: world.timeline,
        tell: world.tell,
      },
      reads: setting.group ? 'groups' : 'rows',
      maxLag: setting.group?.maxLag ?? null,
    })
  putTasks(setting, world)
  const finishedMs = runOut(setting, world)
  return figuresOf(setting, world, { counted, completedMs, failed, finishedMs, trainer })
}

function putTasks(setting: PoolSetting, { tell }: PoolWorld): void {
  const { tasks, group, expected } = setting
  const members = group ? group.size + group.extra : 1
  const expectedOf = (task: number) =>
    Math.max(
      ...Array.from(
        { length: members },
        (_, member) => fateOf(setting, { episode: task * members + member, attempt: 1 }).agentMs,
      ),
    )
  for (let from = 0; from < tasks; from += TASKS_PER_PUT) {
    const batch = Array.from({ length: Math.min(TASKS_PER_PUT, tasks - from) }, (_, i) => ({
      ...{
        key: `t${from + i}`,
        digest: 'simulated',
        taskJson: '{}',
        taskBlob: null,
        seed: from + i,
      },
      ...(expected ? { expectedMs: expectedOf(from + i) } : {}),
    }))
    tell({ type: 'tasks_put', tasks: batch })
  }
  tell({ type: 'tasks_closed' })
}

/** Until the run is over and its last batch is trained. Gives when the run was over. */
function runOut({ tasks, group }: PoolSetting, { run, timeline, tell }: PoolWorld): number {
  let left = tasks * (group ? group.size + group.extra : 1) * STEPS_PER_EPISODE
  let finishedMs: number | undefined
  while (timeline.step()) {
    if (run.status === 'finished') finishedMs ??= timeline.nowMs
    // Where its model fails too often a real run is paused: here somebody is always there.
    if (run.status === 'paused') tell({ type: 'resume' })
    if (--left === 0) break
  }
  if (finishedMs === undefined) throw new Error('the simulated run does not come to an end')
  return finishedMs
}

interface Ran {
  readonly counted: readonly UnrecordedRow[]
  readonly completedMs: readonly number[]
  readonly failed: number
  readonly finishedMs: number
  readonly trainer: { readonly batches: readonly BatchTaken[]; readonly stale: number } | null
}

function figuresOf(setting: PoolSetting, { run }: PoolWorld, ran: Ran): PoolFigures {
  const { completedMs, failed, finishedMs, trainer } = ran
  const report = reportOf(run, finishedMs)
  const { saturation, groups } = report
  const at = (share: number) =>
    completedMs[Math.max(0, Math.ceil(share * completedMs.length) - 1)] ?? 0
  const { modelMs, heldMs } = timesOf(run.totals.passed, ran.counted)
  return {
    concurrency: setting.concurrency,
    elapsedMs: finishedMs,
    episodes: run.totals.ended,
    complete: completedMs.length,
    failed,
    completionMs: { p50: at(0.5), p90: at(0.9), p99: at(0.99), p100: at(1) },
    batchMs: trainer && batchesOf(trainer.batches),
    trainerWaitShare: trainer && waitShareOf(trainer.batches),
    idleShare: 1 - saturation.slotsBusy,
    modelShare: heldMs === 0 ? 0 : Math.min(1, modelMs / heldMs),
    stragglers: groups
      ? { share: groups.stragglers.share, timeShare: groups.stragglers.timeShare }
      : null,
    lag: trainer && lagOf(trainer),
    limitedMs: saturation.limitedMs,
    balance: saturation.balance,
    bias: biasOf(setting, ran.counted),
  }
}

function timesOf({ slotMs }: { readonly slotMs: number }, rows: readonly UnrecordedRow[]) {
  return { heldMs: slotMs, modelMs: rows.reduce((sum, { phases }) => sum + phases.modelMs, 0) }
}

function batchesOf(batches: readonly BatchTaken[]) {
  const took = batches.map(({ waitedMs, stepMs }) => waitedMs + stepMs).sort((a, b) => a - b)
  const at = (share: number) => took[Math.max(0, Math.ceil(share * took.length) - 1)] ?? 0
  return { count: took.length, p50: at(0.5), p90: at(0.9) }
}

function waitShareOf(batches: readonly BatchTaken[]): number {
  const waitedMs = sumOf(batches.map((batch) => batch.waitedMs))
  const wholeMs = waitedMs + sumOf(batches.map((batch) => batch.stepMs))
  return wholeMs === 0 ? 0 : waitedMs / wholeMs
}

function lagOf({ batches, stale }: NonNullable<Ran['trainer']>) {
  const lags = batches.flatMap((batch) => batch.lags)
  return {
    mean: meanOf(lags),
    most: lags.reduce((most, lag) => Math.max(most, lag), 0),
    dropped: stale,
  }
}

function biasOf(setting: PoolSetting, counted: readonly UnrecordedRow[]): PoolBias {
  const members = setting.tasks * (setting.group ? setting.group.size + setting.group.extra : 1)
  const all = Array.from({ length: members }, (_, episode) =>
    fateOf(setting, { episode, attempt: 1 }),
  )
  return {
    lostShare: members === 0 ? 0 : 1 - counted.length / members,
    rewardAll: meanOf(all.map(({ reward }) => reward)),
    rewardKept: meanOf(counted.map(({ reward }) => reward ?? 0)),
    agentMsAll: meanOf(all.map(({ agentMs }) => agentMs)),
    agentMsKept: meanOf(counted.map(({ phases }) => phases.agentMs)),
  }
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0)
}

function meanOf(values: readonly number[]): number {
  return values.length === 0 ? 0 : sumOf(values) / values.length
}
