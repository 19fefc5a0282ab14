/** The closed set of ways an episode ends, and the words around it. `core` holds what each means for a reward. */
export const OUTCOMES = [
  /** A verdict was given. */
  'graded',
  /** The policy used up its own time; the state that is there is graded. */
  'agent_timeout',
  /** The policy used up a budget of its own (turns, tokens): the worker says so. */
  'limit',
  /** The policy broke its own memory limit, and that ended the sandbox. */
  'sandbox_oom',
  /** The user's episode function threw, or held three workers that died. */
  'episode_error',
  /** The task's own set-up failed. */
  'setup_error',
  /** The model endpoint failed or ran out of its own time. */
  'model_error',
  /** No sandbox within its budget. */
  'infra_create',
  /** The sandbox, the node or the machine's services died. */
  'infra_lost',
  /** The grader crashed, or gave no verdict or two. */
  'grade_error',
  'grade_timeout',
  'cancelled_user',
  /** Its group ended without it. */
  'cancelled_quorum',
  /** Its policy had become too old. */
  'cancelled_stale',
  /** An authoritative "not found", or the gold solution fails. */
  'task_invalid',
] as const
export type Outcome = (typeof OUTCOMES)[number]

/**
 * A quota that was met and survived, or a thing worth knowing beside the outcome.
 *
 * | flag | what was met |
 * |---|---|
 * | `disk` | a file system of the sandbox was full, of bytes or of files: `/`, `/tmp`, `/dev/shm` |
 * | `pids` | a new process or thread was refused |
 * | `processesPerUser` | a user was refused a new process or thread, the sandbox as a whole was not |
 * | `output` | a command printed more than is kept |
 * | `fileSize` | a command was ended because a file of it had become too large |
 * | `cpu` | its processor limit held it up for a second, and for a tenth of the time that it computed |
 * | `network` | a bound of its network was met: connections, bytes or the rate at which it asks |
 * | `world` | the episode ended its own world, by killing the first process |
 */
export const FLAGS = [
  ...(['disk', 'pids', 'processesPerUser', 'output'] as const),
  ...(['fileSize', 'cpu', 'world', 'network'] as const),
] as const
export type Flag = (typeof FLAGS)[number]

/** What to do with an episode of some outcome. `zero` is refused where infrastructure, model or grader failed. */
export const POLICY_ACTIONS = ['keep', 'zero', 'mask', 'retry', 'drop', 'drop-group'] as const
export type PolicyAction = (typeof POLICY_ACTIONS)[number]

/** Whose failure it was: a trainer decides by this. */
export const FAULTS = ['caller', 'capacity', 'workload', 'platform'] as const
export type Fault = (typeof FAULTS)[number]

export const PHASES = ['queued', 'create', 'setup', 'agent', 'model', 'grade', 'teardown'] as const
export type Phase = (typeof PHASES)[number]
