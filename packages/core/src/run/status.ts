/**
 * The states of a run, as the protocol names them; `moveRun` alone changes them. (`open`, the
 * protocol's word for a run that waits for its first or next task, is how `waiting` and `running`
 * look from outside while nothing is live: see `viewedState`.)
 *
 * | state | entered | what holds | left |
 * |---|---|---|---|
 * | `waiting` | at the start; the last worker is lost | no worker; nothing is admitted; no sandbox but those that the daemon grades in or releases | a worker attaches; pause; cancel; the end |
 * | `running` | a worker attached; resumed with a worker | episodes are admitted as slots and capacity allow | no worker left; pause; cancel; the end |
 * | `paused` | by a person, or by too many failures (`reason` says which) | nothing is admitted; what is live goes on | resume; cancel; the end |
 * | `cancelling` | cancel | every live episode is being ended as `cancelled_user` | the last row is recorded |
 * | `finished` | no more tasks come, no episode is live, no sandbox is being released, every row is recorded | nothing changes any more | never |
 */
export const RUN_STATUSES = ['waiting', 'running', 'paused', 'cancelling', 'finished'] as const
export type RunStatus = (typeof RUN_STATUSES)[number]

export const RUN_MOVES: Readonly<Record<RunStatus, readonly RunStatus[]>> = {
  waiting: ['running', 'paused', 'cancelling', 'finished'],
  running: ['waiting', 'paused', 'cancelling', 'finished'],
  paused: ['running', 'waiting', 'cancelling', 'finished'],
  cancelling: ['finished'],
  finished: [],
}
