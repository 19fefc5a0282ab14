/**
 * Decisions without I/O: what becomes of a run, given what happens to it. No clock, no randomness,
 * no files: the same inputs give the same decisions, and a log of decisions gives the same state.
 *
 * ## How a coordinator uses it
 * ```ts
 * const run = initialRun(compileRun(spec, { run: id, from: imageDigest }), nowMs)
 * // for everything that happens, one after the other:
 * const step = advance(run, { type: 'sandbox_ready', nowMs, episode, attempt, … })
 * batch.push(...step.events)                 // the run is changed already; the world is not yet
 * await log.append(batch)                    // group commit: many steps, one transaction
 * for (const effect of step.effects) start(effect)    // only now
 * timer.set(nextDueMs(run))                  // then: advance(run, { type: 'tick', nowMs })
 * ```
 * - `advance` decides and applies in one go, because a decision may rest on the one before. If the
 *   append fails, the run in memory is ahead of the log: drop it and recover.
 * - `advance` throws `SandlotError` for what a caller may not do (a conflicting task, a closed run)
 *   and then has changed nothing. What is merely late or doubled gives `ignored` and no events.
 * - Effects are started in their order. Rows and groups are appended by their `seq`, and kept with
 *   it, so that `results_recorded { through }` speaks of all before it; a group names rows before it.
 * - An offer goes to the connection by which its worker is attached, and only while `isCurrent`
 *   holds: it may have grown old on its way. `worker_attached` and `worker_detached` are told in the
 *   order of the connections.
 * - `step.more`: decisions are left over (a step is bounded); tick again once other work had its
 *   turn. `nextDueMs` says "now" meanwhile.
 *
 * ## After a restart
 * ```ts
 * const run = saved ? loadRun(saved) : initialRun(policy, startedAtMs)
 * for (const event of log.from(checkpoint)) apply(run, event)
 * const tail = results.lastSeq()             // rows may have been appended and not yet confirmed
 * const step = recover(run, nowMs, tail)     // before any input; append its events, then its effects
 * ```
 * Then the nodes are asked what they hold: whatever `ownsSandbox` denies is ended, and a live
 * attempt's sandbox that is gone becomes a `sandbox_lost`. Do that from time to time while running
 * as well: a message may be lost, an owner may not. Workers attach anew with the tokens they hold.
 *
 * ## Checkpoints
 * `JSON.stringify(saveRun(run))` at a position of the log lets everything before it be trimmed.
 */
export type { Ending, FinalEnding, RetryEnding } from './episode/ending.ts'
export { episodeId, episodeIndex } from './episode/episode-id.ts'
export { IllegalMove } from './episode/move.ts'
export { EPISODE_MOVES, EPISODE_PHASES, type EpisodePhase } from './episode/phase.ts'
export type { Group } from './group/group.ts'
export { checkMembers, episodesOf } from './group/members.ts'
export { attemptInProgress } from './hedge/hedge.ts'
export { CORE_LIMITS } from './limits.ts'
export { OUTCOME_RULES, type OutcomeRule } from './outcome/rules.ts'
export { type Longest, longestOf } from './report/longest.ts'
export {
  addReading,
  noReading,
  nothingRead,
  type Read,
  type Reading,
  type ReadingTotals,
} from './report/reading.ts'
export { type RunFacts, reportOf, viewedState } from './report/report.ts'
export { itemOf, standingOf } from './report/standing.ts'
export { advance, nextDueMs, recover } from './run/advance.ts'
export { apply } from './run/apply.ts'
export type { Step } from './run/decision.ts'
export type { Effect, LeaseOffer, UnrecordedGroup, UnrecordedRow } from './run/effect.ts'
export type { EventBody, RunEvent } from './run/event.ts'
export { initialRun } from './run/initial.ts'
export type {
  AttemptAddress,
  Fenced,
  GradeResult,
  Input,
  InputBody,
  OwnTerms,
  SandboxFate,
  TaskInput,
  Usage,
} from './run/input.ts'
export { isCurrent, ownsSandbox } from './run/owner.ts'
export { compileRun, type RunPolicy } from './run/policy.ts'
export type { Attempt, Episode, Leaves, Left, Run, Worker } from './run/run.ts'
export { loadRun, type SavedRun, saveRun } from './run/saved.ts'
export { RUN_MOVES, RUN_STATUSES, type RunStatus } from './run/status.ts'
