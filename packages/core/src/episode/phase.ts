import type { EpisodePhase } from '@sandlot/protocol'

/**
 * Where an episode stands. An episode has one attempt at a time, and the phase is that attempt's
 * (a second one beside it has its own, see `hedge/`); `moveEpisode` alone changes it.
 *
 * | phase | entered | what holds | left |
 * |---|---|---|---|
 * | `queued` | put; the wait before a retry is over | no attempt, no slot, no deadline | admitted; cancelled |
 * | `backoff` | an attempt ended that is made again later | no attempt, no slot; due when the wait ends | due; cancelled |
 * | `creating` | admitted | a slot; a sandbox has been asked for; due after `timeout.create` | there; failed; lost; due; given up |
 * | `setup` | the sandbox is there, and the run has a set-up | a token; due a while after `timeout.setup`: the daemon ends its commands in time, and says what they printed | done; failed; due; lost; given up |
 * | `ready` | the sandbox is prepared, no worker is free | nothing runs, no clock | offered; lost; given up |
 * | `offered` | a lease was offered to a worker | a token; due after a lease's life, or the time that a program's files may take | taken; not taken in time; not held after a reconnect; worker or sandbox lost |
 * | `agent` | the lease was taken; a model call ended | the agent's clock runs; due when it is used up | reported; a model call; due; worker or sandbox lost |
 * | `stopping` | the agent's time is used up, and the run waits for what is left of it | no clock; its worker was told to stop, or it had ended in its time and is taken up; due after the time that takes | reported; due; worker or sandbox lost |
 * | `model` | a model call began | the agent's clock stands; due after `timeout.model` | the call ended; reported; due; worker or sandbox lost |
 * | `grade_ready` | reported, the grader is a worker, none is free | the result is stored; no clock | offered; lost; given up |
 * | `grade_offered` | a grade's lease was offered | a token; due after a lease's life | taken; not taken; worker or sandbox lost |
 * | `grading` | the daemon grades, or a worker took the grade's lease | a token; due after `timeout.grade`, by the daemon a while later: it ends its command in time, and says what that printed | graded; due; worker or sandbox lost |
 * | `releasing` | the attempt's end is decided | the sandbox has been given back, its fate may still overrule the end; due after the teardown's time | torn down |
 * | `ended` | the attempt is over and there is no other | the row waits to be recorded; the episode is no longer live | never |
 *
 * "Given up" is the end of an attempt without a fault of its own: no worker is left, or the run is
 * cancelled. A slot is held from `creating` through `releasing`: there are never more sandboxes
 * than slots.
 */
export { EPISODE_PHASES, type EpisodePhase } from '@sandlot/protocol'

/** Where any attempt may go when it is over: directly, where there is no sandbox to give back. */
const OVER = ['releasing', 'queued', 'backoff', 'ended'] as const
const GRADE = ['grade_ready', 'grade_offered', 'grading'] as const

export const EPISODE_MOVES: Readonly<Record<EpisodePhase, readonly EpisodePhase[]>> = {
  queued: ['creating', 'ended'],
  backoff: ['queued', 'ended'],
  creating: ['setup', 'ready', 'offered', ...OVER],
  setup: ['ready', 'offered', ...OVER],
  ready: ['offered', ...OVER],
  offered: ['ready', 'offered', 'agent', ...OVER],
  agent: ['model', 'stopping', ...GRADE, ...OVER],
  model: ['model', 'agent', ...GRADE, ...OVER],
  stopping: ['stopping', ...GRADE, ...OVER],
  grade_ready: ['grade_offered', ...OVER],
  grade_offered: [...GRADE, ...OVER],
  grading: [...GRADE, ...OVER],
  releasing: ['queued', 'backoff', 'ended'],
  ended: [],
}
