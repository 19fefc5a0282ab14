import { z } from 'zod'
import { EPISODE_PHASES } from './episode.ts'
import { episodeFunction } from './episode-function.ts'
import { command } from './exec.ts'
import { gradeSpec } from './grade.ts'
import { GROUP_REASONS, groupSpec } from './group.ts'
import { hedgeSpec } from './hedge.ts'
import { idOf } from './ids.ts'
import { environment, userName, workingDirectory } from './kernel-text.ts'
import { artifactPatterns, keepSpec } from './leave.ts'
import { LIMITS } from './limits.ts'
import { phaseNetwork } from './network.ts'
import { OUTCOMES, POLICY_ACTIONS } from './outcomes.ts'
import { programSpec } from './program.ts'
import { durationOf } from './quantity.ts'
import { resources } from './resources.ts'
import { ifIncompatible, tags } from './sandbox.ts'
import { LIMITING_FACTORS, saturation } from './saturation.ts'
import { secretUses } from './secret.ts'
import { startPoint } from './start-point.ts'
import { timeouts } from './timeouts.ts'
import { runCost } from './usage.ts'
import { wholeText } from './whole-text.ts'

export const runName = z
  .string()
  .min(1)
  .max(LIMITS.nameLength)
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]*$/,
    'a run’s name has letters, digits, dots, dashes and underscores',
  )

/** How often an episode is tried again, by what failed. */
export const retries = z
  .object({
    infra: z.number().int().min(0).max(100).optional(),
    model: z.number().int().min(0).max(100).optional(),
    grade: z.number().int().min(0).max(100).optional(),
    timeout: z.number().int().min(0).max(100).optional(),
  })
  .strict()

const runFields = z
  .object({
    name: runName,
    /** Who runs the episodes: a process that comes as a worker, the daemon itself, which runs a program, or containers of a function. */
    kind: z.enum(['worker', 'program', 'function']),
    /** Of a run of programs, and there only. */
    program: programSpec.optional(),
    /** Of a run of a function, and there only. It also grades where `grade` is a worker's. */
    function: episodeFunction.optional(),
    from: startPoint,
    concurrency: z.number().int().min(1).max(LIMITS.concurrency),
    timeout: timeouts.optional(),
    retry: retries.optional(),
    /** Of a memory snapshot they are fixed. */
    resources: resources.optional(),
    ifIncompatible: ifIncompatible.optional(),
    /** What each phase may reach. Default: nothing. */
    network: phaseNetwork.optional(),
    /** What is put into requests of its sandboxes on their way out, and never enters them. */
    secrets: secretUses.optional(),
    env: environment.optional(),
    workdir: workingDirectory.optional(),
    user: userName.optional(),
    setup: z.array(command).max(100).optional(),
    grade: gradeSpec.optional(),
    /** Episodes that are compared with one another. Default: each is by itself. */
    group: groupSpec.optional(),
    /** A second attempt beside one whose sandbox takes unusually long. Default: none. */
    hedge: hedgeSpec.optional(),
    policy: z.partialRecord(z.enum(OUTCOMES), z.enum(POLICY_ACTIONS)).optional(),
    seed: z.number().int().nonnegative().optional(),
    /** Admits nothing more while so many results (groups, where there are any) are not read. Default: they just wait on disk. */
    ahead: z.number().int().min(1).max(LIMITS.concurrency).optional(),
    /** Set by the user when the episode's code changed: part of the digest. */
    version: wholeText.max(LIMITS.nameLength).optional(),
    tags: tags.optional(),
    /** Files of the sandbox that become artifacts of each episode, whatever ended it while its sandbox was there. */
    artifacts: artifactPatterns.optional(),
    /** Keeps the files of sandboxes as snapshots, to look into them later. Default: of none. */
    keep: keepSpec.optional(),
    /** So long after its end the run is deleted, with all that belongs to it. Default: as the daemon is set up, where nothing is. */
    retain: durationOf(LIMITS.retainMsMin, 'what the daemon is set up for').optional(),
    /** What to do when a finished run of this name exists. Default: refuse. */
    ifExists: z.enum(['attach', 'replace']).optional(),
  })
  .strict()

/** `POST /v1/runs`. A run has a name; the same name again attaches to it. */
export const runCreate = runFields
  .refine(({ kind, program }) => (kind === 'program') === (program !== undefined), {
    path: ['program'],
    message: 'a run of kind program has one, another has none',
  })
  .refine((run) => (run.kind === 'function') === (run.function !== undefined), {
    path: ['function'],
    message: 'a run of kind function has one, another has none',
  })
  .refine(({ program, grade }) => program === undefined || grade?.kind !== 'worker', {
    path: ['grade'],
    message: 'a run of programs has no worker that could grade: give a command',
  })
  .refine(({ program, grade }) => program?.reward === undefined || grade === undefined, {
    path: ['program', 'reward'],
    message: 'the run has a grader: only that one gives rewards',
  })
export type RunCreateInput = z.input<typeof runCreate>
export type RunCreate = z.output<typeof runCreate>

/** `POST /v1/runs/:name/attach`: what is named has to be what the run was started with. */
export const runAttach = runFields
  .omit({ name: true, kind: true, function: true, ifExists: true })
  .omit({ concurrency: true, ahead: true, tags: true, artifacts: true, keep: true })
  .omit({ retain: true })
  .partial()
export type RunAttachInput = z.input<typeof runAttach>
export type RunAttach = z.output<typeof runAttach>

export const RETRY_DEFAULTS = { infra: 2, model: 2, grade: 1, timeout: 0 } as const

/** `POST /v1/runs/:name/policy-version`. */
export const policyVersionSet = z.object({ version: z.number().int().nonnegative() }).strict()

export const RUN_STATES = [
  'open',
  'running',
  'waiting',
  'paused',
  'cancelling',
  'finished',
] as const
export type RunState = (typeof RUN_STATES)[number]

export const runView = z.object({
  id: idOf('run'),
  name: z.string(),
  project: z.string(),
  state: z.enum(RUN_STATES),
  /** Why it is paused or waiting. */
  reason: z.string().optional(),
  digest: z.string(),
  concurrency: z.number(),
  createdAtMs: z.number(),
  finishedAtMs: z.number().optional(),
  tags,
  counts: z.object({
    tasks: z.number(),
    queued: z.number(),
    running: z.number(),
    grading: z.number(),
    done: z.number(),
  }),
  outcomes: z.partialRecord(z.enum(OUTCOMES), z.number()),
  flags: z.record(z.string(), z.number()),
  /** Of a run with groups. */
  groups: z.object({ open: z.number(), complete: z.number(), failed: z.number() }).optional(),
  /** Of the policy, as it was last set. */
  policyVersion: z.number().optional(),
})
export type RunView = z.infer<typeof runView>

/** A run as somebody finds it who wants to work on it. */
export const runAttached = z.object({
  run: runView,
  /** What a worker of it has to bring. */
  needs: z.object({ episode: z.boolean(), grader: z.boolean() }),
})
export type RunAttached = z.infer<typeof runAttached>

const quantiles = z.object({
  count: z.number(),
  p50Ms: z.number(),
  p95Ms: z.number(),
  p99Ms: z.number(),
})

const groupsReport = z.object({
  open: z.number(),
  complete: z.number(),
  failed: z.number(),
  /** How those ended, by what ended them. */
  reasons: z.partialRecord(z.enum(GROUP_REASONS), z.number()),
  /** Members that still ran when their groups were complete, and ended as `cancelled_quorum`. */
  stragglers: z.object({
    episodes: z.number(),
    /** Of all members of complete groups. */
    share: z.number(),
    /** Of the time that all these members took. */
    timeShare: z.number(),
  }),
})

export const runReport = z.object({
  run: runView,
  elapsedMs: z.number(),
  perSecond: z.number(),
  limiting: z.enum(LIMITING_FACTORS),
  /** Absent of runs that finished before this was told. */
  saturation: saturation.optional(),
  rewardMean: z.number().nullable(),
  /** All that began, and those among them that tried an episode again, whether a retry paid for it or not. */
  attempts: z.number(),
  retries: z.number(),
  /** Why episodes ended as they did, and why they were tried again; the most frequent first. */
  causes: z.array(
    z.object({
      /** null: given up without a fault of its own. */
      outcome: z.enum(OUTCOMES).nullable(),
      /** The episode was tried again; otherwise it ended so. */
      retried: z.boolean(),
      /** As it was said the first time; others that differ in ids and numbers are counted with it. */
      cause: z.string(),
      count: z.number(),
      /** Key of an episode that it met. */
      example: z.string(),
    }),
  ),
  /** The attempts that have gone on for the longest, the oldest first: where to look when nothing ends. */
  longest: z
    .array(
      z.object({
        key: z.string(),
        episode: idOf('episode'),
        attempt: z.number(),
        /** When it was admitted. */
        sinceMs: z.number(),
        phase: z.enum(EPISODE_PHASES),
        phaseSinceMs: z.number(),
        /** What it waits for; null: for nothing but itself. */
        waits: z.string().nullable(),
        /** When the worker that has it was heard last. null: none has, or it is the daemon. */
        heardMs: z.number().nullable(),
      }),
    )
    .optional(),
  phases: z.record(z.string(), quantiles),
  /** Of a run with groups. */
  groups: groupsReport.optional(),
  /** Of its sandboxes that have ended. null: there was no price table. */
  cost: runCost.nullable().optional(),
  /** Of a run that hedges: second attempts, and those among them that were first. */
  hedges: z.object({ started: z.number(), won: z.number() }).optional(),
})
export type RunReport = z.infer<typeof runReport>
