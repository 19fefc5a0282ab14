import { z } from 'zod'
import { artifact } from './artifact.ts'
import { FLAGS, OUTCOMES } from './outcomes.ts'

export const RESULT_SCHEMA_VERSION = 1

export const attemptPhases = z.object({
  queuedMs: z.number(),
  createMs: z.number(),
  setupMs: z.number(),
  agentMs: z.number(),
  modelMs: z.number(),
  gradeMs: z.number(),
  teardownMs: z.number(),
})

/** One try at an episode, kept with its evidence. */
export const attemptRow = z.object({
  attempt: z.number(),
  /** null: given up without a fault of its own (its worker died, or none was left). */
  outcome: z.enum(OUTCOMES).nullable(),
  sandbox: z.string().nullable(),
  node: z.string().nullable(),
  cause: z.array(z.string()),
  phases: attemptPhases,
})
export type AttemptRow = z.infer<typeof attemptRow>

/** One row per episode: what a trainer reads, and what is kept. */
export const resultRow = z.object({
  schema: z.literal(RESULT_SCHEMA_VERSION),
  cursor: z.string(),
  run: z.string(),
  key: z.string(),
  episode: z.string(),
  group: z.string(),
  /** Which of its group it is, from 0. */
  member: z.number(),
  /** Position among the episodes of the run, in the order of submission. */
  index: z.number(),
  /** Number of the attempt that counts, from 1. */
  attempt: z.number(),
  attempts: z.array(attemptRow),
  parent: z.string().nullable(),
  seed: z.number(),
  policyVersion: z.number(),
  tags: z.record(z.string(), z.string()),
  /** Digest of the image. */
  from: z.string(),
  outcome: z.enum(OUTCOMES),
  flags: z.array(z.enum(FLAGS)),
  valid: z.boolean(),
  /** By the policy `drop` or `drop-group`: recorded, and left out by whoever reads results for training. */
  dropped: z.boolean(),
  /** null, never 0, where `valid` is false. */
  reward: z.number().nullable(),
  rewards: z.record(z.string(), z.number()).nullable(),
  /** What the episode returned as `data`; a blob's digest in `dataBlob` when it is large. */
  data: z.unknown(),
  dataBlob: z.string().nullable(),
  /** One line for a person, null when nothing failed. */
  error: z.string().nullable(),
  /** From the outside in: what happened, because of what. */
  cause: z.array(z.string()),
  /** What the attempt that counts left: by its worker's report, and the files that were collected. */
  artifacts: z.array(artifact),
  /** What of it could not be kept, a sentence each. */
  leftOut: z.array(z.string()),
  /** The snapshot of its files, by the option `keep`; null: there is none. */
  kept: z.string().nullable(),
  phases: attemptPhases,
  usage: z.object({
    cpuMs: z.number(),
    memoryPeakBytes: z.number(),
    diskBytes: z.number(),
    networkBytes: z.number(),
  }),
  /** Of the attempt that counts, in whole millionths of the currency; null without a price table. */
  cost: z.number().nullable(),
  sandbox: z.string().nullable(),
  node: z.string().nullable(),
  startedAt: z.string(),
  endedAt: z.string(),
})
export type ResultRow = z.infer<typeof resultRow>

/** `GET /v1/runs/:name/results`. `done`: the run is over and this is its last page. */
export const resultsPage = z.object({
  rows: z.array(resultRow),
  cursor: z.string(),
  done: z.boolean(),
})
export type ResultsPage = z.infer<typeof resultsPage>
