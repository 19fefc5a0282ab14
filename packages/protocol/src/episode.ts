/** Episodes as somebody looks at them, before there is a result and after. */
import { z } from 'zod'
import { OUTCOMES } from './outcomes.ts'
import { attemptPhases, attemptRow, resultRow } from './result.ts'

/** As the counts of a run name them. */
export const EPISODE_STATES = ['queued', 'running', 'grading', 'done'] as const
export type EpisodeState = (typeof EPISODE_STATES)[number]

/** Where an episode stands, or the attempt of it that is in progress. */
export const EPISODE_PHASES = [
  'queued',
  'backoff',
  'creating',
  'setup',
  'ready',
  'offered',
  'agent',
  'model',
  'stopping',
  'grade_ready',
  'grade_offered',
  'grading',
  'releasing',
  'ended',
] as const
export type EpisodePhase = (typeof EPISODE_PHASES)[number]

/** One of a list. */
export const episodeItem = z.object({
  episode: z.string(),
  key: z.string(),
  group: z.string(),
  member: z.number(),
  index: z.number(),
  state: z.enum(EPISODE_STATES),
  phase: z.enum(EPISODE_PHASES),
  /** Since when it is in that phase. */
  sinceMs: z.number(),
  /** Number of the attempt that is in progress, or that counts; 0 before the first. */
  attempt: z.number(),
  sandbox: z.string().nullable(),
  /** null before it is done. */
  outcome: z.enum(OUTCOMES).nullable(),
  reward: z.number().nullable(),
  /** Of one that is tried again: why. */
  error: z.string().nullable(),
})
export type EpisodeItem = z.infer<typeof episodeItem>

/** An attempt that is in progress. */
export const attemptProgress = z.object({
  attempt: z.number(),
  phase: z.enum(EPISODE_PHASES),
  sinceMs: z.number(),
  /** When its phase is over at the latest; null where that has no end. */
  dueMs: z.number().nullable(),
  sandbox: z.string().nullable(),
  node: z.string().nullable(),
  policyVersion: z.number(),
  /** Of the phases that are over. */
  phases: attemptPhases,
  /** Who works on it, and when that one was heard last; null: nobody yet, or the daemon, which runs programs itself. */
  worker: z
    .object({
      name: z.string(),
      heardMs: z.number(),
      /** Since when its connection is gone; null: it is there. */
      goneMs: z.number().nullable(),
    })
    .nullable(),
})
export type AttemptProgress = z.infer<typeof attemptProgress>

/** `GET /v1/runs/:name/episodes/:key`. */
export const episodeView = episodeItem.extend({
  seed: z.number(),
  /** What it waits for, one sentence; null where it doesn't. */
  waits: z.string().nullable(),
  /** Episodes that are admitted before it, while it is queued. */
  ahead: z.number().nullable(),
  /** In progress: its own, and a second one beside it. */
  progress: z.array(attemptProgress),
  /** Those before. */
  attempts: z.array(attemptRow),
  /** Once it is done. */
  row: resultRow.nullable(),
})
export type EpisodeView = z.infer<typeof episodeView>
