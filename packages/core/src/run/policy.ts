import {
  type GroupRule,
  type HedgeRule,
  type KeepRule,
  type Outcome,
  type PolicyAction,
  RETRY_DEFAULTS,
  type RunCreate,
  SandlotError,
  TIMEOUT_DEFAULTS_MS,
} from '@sandlot/protocol'
import { CORE_LIMITS } from '../limits.ts'
import { OUTCOME_RULES } from '../outcome/rules.ts'

/** A run's specification with every default filled in: past this there is no option left open. */
export interface RunPolicy {
  /** `rn_…`; the ids of its episodes are made from it. */
  readonly run: string
  /** Digest of the image. */
  readonly from: string
  readonly tags: Readonly<Record<string, string>>
  readonly concurrency: number
  /** Nothing is admitted while so many rows, or groups where there are any, are not read. */
  readonly ahead: number | null
  readonly timeoutMs: {
    readonly create: number
    readonly setup: number
    readonly agent: number
    readonly model: number
    readonly grade: number
    /** Of one attempt, from its admission, without the time it waits for a worker. */
    readonly total: number | null
  }
  readonly retry: {
    readonly infra: number
    readonly model: number
    readonly grade: number
    readonly timeout: number
  }
  /** For how long an agent whose time is used up is waited for, so that what it left is kept; 0: not at all. */
  readonly stopMs: number
  readonly setup: boolean
  /** `daemon`: a command that the daemon runs. `worker`: a function, under a lease of its own. */
  readonly grade: 'none' | 'daemon' | 'worker'
  /** null: each episode is by itself. */
  readonly group: GroupRule | null
  /** null: no second attempt beside one that straggles. */
  readonly hedge: HedgeRule | null
  readonly actions: Readonly<Partial<Record<Outcome, PolicyAction>>>
  /** Files of each sandbox become artifacts. */
  readonly collects: boolean
  /** null: of no sandbox the files are kept. */
  readonly keep: KeepRule | null
}

/**
 * Fills in what the request leaves open.
 * @throws SandlotError `invalid_request` for a policy that would turn another's fault into a zero.
 */
export function compileRun(
  spec: Pick<
    RunCreate,
    | 'concurrency'
    | 'ahead'
    | 'timeout'
    | 'retry'
    | 'program'
    | 'setup'
    | 'grade'
    | 'group'
    | 'hedge'
    | 'policy'
    | 'tags'
    | 'artifacts'
    | 'keep'
  >,
  ids: { readonly run: string; readonly from: string },
): RunPolicy {
  const actions = spec.policy ?? {}
  for (const [outcome, action] of Object.entries(actions)) {
    const allowed = OUTCOME_RULES[outcome as Outcome].actions
    if (!allowed.includes(action)) {
      throw new SandlotError('invalid_request', `policy.${outcome} can't be '${action}'`, {
        hint: `Use one of ${allowed.join(', ')}: what the policy did not do is not its zero.`,
      })
    }
  }
  return {
    run: ids.run,
    from: ids.from,
    tags: spec.tags ?? {},
    concurrency: spec.concurrency,
    ahead: spec.ahead ?? null,
    timeoutMs: { ...TIMEOUT_DEFAULTS_MS, total: null, ...defined(spec.timeout) },
    retry: { ...RETRY_DEFAULTS, ...defined(spec.retry) },
    stopMs: spec.program === undefined ? 0 : CORE_LIMITS.stopMs,
    setup: (spec.setup?.length ?? 0) > 0,
    grade: spec.grade === undefined ? 'none' : spec.grade.kind === 'worker' ? 'worker' : 'daemon',
    group: spec.group ?? null,
    hedge: spec.hedge ?? null,
    actions,
    collects: (spec.artifacts?.length ?? 0) > 0,
    keep: spec.keep ?? null,
  }
}

/** Without the keys that are there and undefined: they would overwrite a default. */
function defined<T extends object>(
  options: T | undefined,
): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(options ?? {}).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> }
}
