import { createHash } from 'node:crypto'
import { compileRun, type RunPolicy } from '@sandlot/core'
import {
  completeResources,
  type EpisodeFunction,
  type GradeSpec,
  type GroupRule,
  type HedgeRule,
  type KeepRule,
  type PhaseNetwork,
  type ProgramSpec,
  RETRY_DEFAULTS,
  type Resources,
  type RunCreate,
  SandlotError,
  type SecretUses,
  TIMEOUT_DEFAULTS_MS,
} from '@sandlot/protocol'
import { defined } from '../defined.ts'
import { functionOf } from '../functions/definition.ts'
import type { FunctionRecord } from '../functions/records.ts'
import { containersOf, type FunctionContainers } from './functions/containers-of.ts'
import { COORDINATOR_LIMITS } from './limits.ts'
import type { RunMemory, RunRequest } from './port.ts'

/** What a run is: complete, nothing optional but what may really be absent. Stored once, never changed. */
export interface Specification {
  readonly image: string
  readonly imageDigest: string
  /** The memory that each sandbox starts from; absent: from the image. */
  readonly memory?: RunMemory
  /** What is done where a task's own memory can't be restored; the run's is settled by `memory`. */
  readonly ifIncompatible?: RunCreate['ifIncompatible']
  readonly concurrency: number
  readonly timeoutMs: Timeouts
  readonly retry: { readonly [K in keyof typeof RETRY_DEFAULTS]: number }
  readonly resources: Resources
  readonly network: PhaseNetwork
  /** What is put into requests: names of secrets, no values. Absent: nothing. */
  readonly secrets?: SecretUses
  readonly env: Readonly<Record<string, string>>
  readonly workdir: string | null
  readonly user: string | null
  readonly setup: readonly (string | string[])[]
  readonly grade: GradeSpec | null
  /** Absent: workers run the episodes. */
  readonly program?: ProgramSpec
  /** What runs the episodes in containers, and how many of these there are; absent: workers or programs do. */
  readonly function?: FunctionRecord
  readonly containers?: FunctionContainers
  /** Absent: each episode is by itself. */
  readonly group?: GroupRule
  /** Absent: nothing is begun a second time beside what straggles. */
  readonly hedge?: HedgeRule
  readonly policy: NonNullable<RunCreate['policy']>
  readonly seed: number
  readonly ahead: number | null
  readonly version: string
  readonly tags: Readonly<Record<string, string>>
  /** Patterns of files that become artifacts; absent: none. */
  readonly artifacts?: readonly string[]
  /** Absent: the files of no sandbox are kept. */
  readonly keep?: KeepRule
  /** How long it stays when it is over; absent: as the daemon is set up. */
  readonly retainMs?: number
}

export interface Timeouts {
  readonly create: number
  readonly setup: number
  readonly agent: number
  readonly model: number
  readonly grade: number
  readonly total: number | null
}

export type CommandGrade = Extract<GradeSpec, { kind: 'command' }>

/** What two runs of one name may differ in and still be the same run. */
const OUTSIDE_DIGEST = new Set<keyof Specification>([
  ...([
    'image',
    'ifIncompatible',
    'concurrency',
    'ahead',
    'tags',
    'artifacts',
    'keep',
    'retainMs',
    'containers',
  ] as const),
])

/** Completes what a caller sent. `invalid_request` where its parts contradict one another. */
export function completeSpecification(run: RunRequest, imageDigest: string): Specification {
  const specification: Specification = {
    image: run.from,
    imageDigest,
    ...(run.memory ? { memory: run.memory } : {}),
    concurrency: run.concurrency,
    timeoutMs: { ...TIMEOUT_DEFAULTS_MS, total: null, ...defined(run.timeout) },
    retry: { ...RETRY_DEFAULTS, ...defined(run.retry) },
    resources: completeResources(run.resources),
    network: run.network ?? {},
    ...(run.secrets ? { secrets: run.secrets } : {}),
    env: run.env ?? {},
    workdir: run.workdir ?? null,
    user: run.user ?? null,
    setup: run.setup ?? [],
    grade: run.grade ?? null,
    ...(run.program ? { program: run.program } : {}),
    ...(run.function ? functionTerms(run, run.function) : {}),
    ...(run.ifIncompatible ? { ifIncompatible: run.ifIncompatible } : {}),
    ...(run.group ? { group: run.group } : {}),
    ...(run.hedge ? { hedge: run.hedge } : {}),
    policy: run.policy ?? {},
    seed: run.seed ?? 0,
    ahead: run.ahead ?? null,
    version: run.version ?? '',
    tags: run.tags ?? {},
    ...(run.artifacts ? { artifacts: run.artifacts } : {}),
    ...(run.keep ? { keep: run.keep } : {}),
    ...(run.retain === undefined ? {} : { retainMs: run.retain }),
  }
  const sizeBytes = Buffer.byteLength(JSON.stringify(specification))
  if (sizeBytes > COORDINATOR_LIMITS.specificationBytes) {
    throw new SandlotError(
      'too_large',
      `the run’s specification has ${sizeBytes} bytes; at most ${COORDINATOR_LIMITS.specificationBytes} are kept`,
      { hint: 'Bring large files into the image, and fewer of them with the grader.' },
    )
  }
  return specification
}

function functionTerms(
  { concurrency, functionImage = null }: RunRequest,
  { concurrency: each, containers, idle, ...spec }: EpisodeFunction,
): Pick<Specification, 'function' | 'containers'> {
  return {
    function: functionOf(spec, functionImage),
    containers: containersOf({ each, containers, idle }, concurrency),
  }
}

/** What core decides by. Throws `invalid_request` for a policy that can't be. */
export function policyOf(run: {
  readonly id: string
  readonly specification: Specification
}): RunPolicy {
  const { concurrency, timeoutMs, retry, setup, grade, group, hedge, ...more } = run.specification
  const { policy, tags, imageDigest, ahead, artifacts, keep, program } = more
  const { total, ...timeout } = timeoutMs
  return compileRun(
    {
      ...{ concurrency, retry, policy, tags, setup: [...setup] },
      timeout: total === null ? timeout : { ...timeout, total },
      ...(grade === null ? {} : { grade }),
      ...(program === undefined ? {} : { program }),
      ...(group === undefined ? {} : { group }),
      ...(hedge === undefined ? {} : { hedge }),
      ...(ahead === null ? {} : { ahead }),
      ...(artifacts === undefined ? {} : { artifacts: [...artifacts] }),
      ...(keep === undefined ? {} : { keep }),
    },
    { run: run.id, from: imageDigest },
  )
}

/** Whether the daemon runs the episodes, and no process has to come for them. */
export function runsByItself({ program, function: runs }: Specification): boolean {
  return program !== undefined || runs !== undefined
}

/** `sha256:…` over all that makes it another run. */
export function digestOf(specification: Specification): string {
  return `sha256:${createHash('sha256')
    .update(canonical(identityOf(specification)))
    .digest('hex')}`
}

/** All that makes it another run. */
export function identityOf(specification: Specification): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(specification).filter(
      ([field]) => !OUTSIDE_DIGEST.has(field as keyof Specification),
    ),
  )
}

/** JSON with sorted keys: one text for one value. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_, item: unknown) =>
    typeof item === 'object' && item !== null && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)))
      : item,
  )
}
