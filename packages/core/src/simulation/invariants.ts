import { SandlotError } from '@sandlot/protocol'
import type { EpisodePhase } from '../episode/phase.ts'
import type { Step } from '../run/decision.ts'
import type { Effect, UnrecordedRow } from '../run/effect.ts'
import type { InputBody } from '../run/input.ts'
import { ownsSandbox } from '../run/owner.ts'
import type { Run } from '../run/run.ts'
import { saveRun } from '../run/saved.ts'
import { checkKept, checkLeft } from './leave-invariants.ts'
import type { Scenario } from './scenario.ts'
import { stateText } from './state-text.ts'
import type { Truth } from './truth.ts'
import type { OfSandbox } from './world.ts'

/** What must hold and did not; the message names the rule. */
export class BrokenInvariant extends Error {
  override readonly name = 'BrokenInvariant'
}

export function must(holds: boolean, rule: string, found: () => unknown): void {
  if (!holds) throw new BrokenInvariant(`${rule}: ${JSON.stringify(found())}`)
}

/** After every step. `owned`: real sandboxes that live and belong to a live attempt. */
export function checkStep(run: Run, scenario: Scenario, owned: number): void {
  const { concurrency } = scenario.policy
  const { slots, counts } = run.index
  must(slots.size <= concurrency, 'no more slots than the pool has', () => slots.size)
  must(owned <= concurrency, 'no more sandboxes than the pool has', () => owned)
  must(
    run.totals.ended + run.live.size === run.totals.tasks,
    'every task is live or has ended',
    () => [run.totals.ended, run.live.size, run.totals.tasks],
  )
  checkKept(run)
  let counted = 0
  for (const count of Object.values(counts)) counted += count
  const inProgress = run.live.size + run.hedges.size
  must(counted === inProgress, 'the phases count every live episode once', () => counts)
  for (const worker of run.workers.values()) {
    must(worker.leases.size <= scenario.slots, 'no more leases than a worker has slots', () => [
      worker.name,
      worker.leases.size,
    ])
  }
}

/** After nodes and run were brought in line: by a rule of its own, whatever core says of who owns them. */
export function checkHeld(run: Run, held: readonly OfSandbox[]): void {
  for (const { episode, attempt, sandbox } of held) {
    const attempts = [run.live.get(episode), run.hedges.get(episode)]
    const found = attempts.find((each) => each?.attempt === attempt)?.current
    const wanted = found != null && (found.sandbox ?? sandbox) === sandbox
    must(wanted, 'no sandbox outlives its attempt', () => [episode, attempt, sandbox])
  }
}

/** What one step decided and asked for. */
export function checkDecisions(run: Run, step: Step, input: InputBody): void {
  const types = step.events.map(({ type }) => type)
  must(
    run.status === 'running' || !types.includes('admitted') || types.includes('status_changed'),
    'nothing is admitted but by a running run',
    () => [run.status, types],
  )
  must(
    run.status === 'running' || !types.includes('hedged') || types.includes('status_changed'),
    'nothing is hedged but by a running run',
    () => [run.status, types],
  )
  for (const event of step.events) {
    if (event.type !== 'attempt_ended' || event.gone) continue
    const { episode, attempt } = event
    const released = step.effects.some(
      (effect) =>
        effect.type === 'release_sandbox' &&
        effect.episode === episode &&
        effect.attempt === attempt,
    )
    must(released, 'what an attempt had is given back when it ends', () => event)
  }
  if (input.type === 'recovered') checkRecovered(run, step)
  if (input.type === 'sandbox_ready' && !ownsSandbox(run, input)) {
    const released = step.effects.some(
      (effect) => effect.type === 'release_sandbox' && effect.sandbox === input.sandbox,
    )
    must(released, 'a sandbox that nobody waits for is released', () => [input, step])
  }
}

/** After a restart everything is asked for again whose answer has not come. */
function checkRecovered(run: Run, step: Step): void {
  const asked = new Set(
    step.effects.map((effect) =>
      'episode' in effect ? `${effect.type} ${effect.episode}/${effect.attempt}` : effect.type,
    ),
  )
  for (const episode of run.index.slots) {
    const byDaemon = episode.phase === 'grading' && episode.current?.worker === null
    const type = byDaemon ? 'start_grade' : ASKED_IN[episode.phase]
    const what = `${type} ${episode.index}/${episode.attempt}`
    must(type === undefined || asked.has(what), 'a restart asks again', () => what)
  }
  const rows = step.effects.filter((effect) => 'seq' in effect).length
  must(rows === run.unrecorded.size, 'a restart asks for each row and group again', () => rows)
}

const ASKED_IN: Readonly<Partial<Record<EpisodePhase, Effect['type']>>> = {
  creating: 'acquire_sandbox',
  setup: 'run_setup',
  offered: 'offer_lease',
  grade_offered: 'offer_lease',
  releasing: 'release_sandbox',
}

/** What an agent had of its own time when it was called off, by its worker's own clock. */
export function checkTimeout(ownMs: number, timeoutMs: number): void {
  must(ownMs >= timeoutMs - 1, 'the agent’s clock leaves out the platform’s time', () => [
    ownMs,
    timeoutMs,
  ])
}

/** The log gives the state, exactly. */
export function checkReplay(live: Run, replayed: Run): void {
  const left = stateText(live)
  const right = stateText(replayed)
  must(left === right, 'the log gives the exact state', () => {
    const at = [...left].findIndex((character, i) => character !== right[i])
    const around = (text: string) => text.slice(Math.max(0, at - 200), at + 200)
    return { live: around(left), replayed: around(right) }
  })
}

/** When all is over: each row against what really happened. */
export function checkRow(row: UnrecordedRow, truth: Truth): void {
  const found = () => row
  const key = row.sandbox ?? ''
  const death = truth.deaths.get(key)
  must(
    row.valid || (row.reward === null && row.rewards === null),
    'no reward without a sample',
    found,
  )
  must(row.reward === null || Number.isFinite(row.reward), 'a reward is a finite number', found)
  if (row.valid) checkSample(row, truth, death)
  const told = truth.versions.get(key)
  must(
    told === undefined || told === row.policyVersion,
    'the version that the agent was told',
    found,
  )
  if (row.outcome === 'cancelled_user') {
    const stopped = death?.cause === 'stopped' || death?.cause === 'lifetime'
    must(truth.cancelled || stopped, 'cancelled by somebody', found)
  }
  must(
    row.attempts.every(
      (attempt, i) => i === 0 || attempt.attempt > (row.attempts[i - 1]?.attempt ?? 0),
    ),
    'attempts are kept in order',
    found,
  )
}

/** An infrastructure fault never is a reward, and a reward is what was really earned. */
function checkSample(
  row: UnrecordedRow,
  truth: Truth,
  death: { readonly atMs: number; readonly cause: string } | undefined,
): void {
  const found = () => ({ row, death, given: truth.given.get(key) })
  const key = row.sandbox ?? ''
  if (row.outcome === 'sandbox_oom') {
    must(death?.cause === 'oom_limit', 'an oom is the sandbox’s own, with evidence', found)
    return
  }
  const given = (truth.given.get(key) ?? []).filter(({ reward }) => reward === row.reward)
  must(
    death === undefined || given.some(({ by, atMs }) => by === 'daemon' && atMs <= death.atMs),
    'no infrastructure fault with a reward',
    found,
  )
  must(
    given.length > 0 || truth.ungraded.get(key) !== true,
    'no zero where the platform kept the grader from a verdict',
    found,
  )
  if (row.outcome !== 'graded') return
  must(given.length > 0, 'the reward that was earned', found)
  must(
    given.some(({ token }) => !truth.revoked.has(token)),
    'a lease that is over gives nothing',
    found,
  )
}

/** When all is over. */
export function checkEnd(
  run: Run,
  rows: readonly { readonly row: UnrecordedRow }[],
  end: {
    readonly truth: Truth
    readonly held: number
    readonly calm: boolean
  },
): void {
  const { truth, held, calm } = end
  must(rows.length === run.totals.tasks, 'one result per episode', () => [rows.length, run.totals])
  must(
    new Set(rows.map(({ row }) => row.episode)).size === rows.length,
    'no result twice',
    () => rows,
  )
  must(held === 0, 'every acquired sandbox is released', () => held)
  must(!calm || truth.reaped === 0, 'nobody else has to clean up', () => truth.reaped)
  must(run.groups.size === 0, 'every group is completed', () => [...run.groups.keys()])
  for (const [key, times] of truth.begun) {
    must(times === 1, 'an agent begins once in a sandbox', () => [key, times])
  }
  for (const { row } of rows) checkRow(row, truth)
  checkLeft(run, rows)
  const slowest = Math.max(0, ...rows.map(({ row }) => row.phases.teardownMs))
  must(!calm || slowest < 10_000, 'a sandbox is released at once', () => slowest)
}

/** A caller's mistakes are refused, and change nothing. */
export function mustRefuse(run: Run, code: string, attempt: () => void): void {
  const before = JSON.stringify(saveRun(run))
  try {
    attempt()
  } catch (error) {
    must(error instanceof SandlotError && error.code === code, `refused as ${code}`, () =>
      String(error),
    )
    must(JSON.stringify(saveRun(run)) === before, 'a refusal changes nothing', () => code)
    return
  }
  must(false, `refused as ${code}`, () => 'it was taken')
}
