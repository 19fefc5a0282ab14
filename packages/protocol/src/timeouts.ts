import { z } from 'zod'
import { LIMITS } from './limits.ts'
import { deadlineOf } from './quantity.ts'

const phaseMs = deadlineOf(LIMITS.phaseMsMin, 'the default')

/** Deadlines of the phases, each counted on its own. */
export const timeouts = z
  .object({
    create: phaseMs.optional(),
    setup: phaseMs.optional(),
    agent: phaseMs.optional(),
    model: phaseMs.optional(),
    grade: phaseMs.optional(),
    total: phaseMs.optional(),
  })
  .strict()

export const TIMEOUT_DEFAULTS_MS = {
  create: 60_000,
  setup: 300_000,
  agent: 900_000,
  model: 300_000,
  grade: 300_000,
} as const
