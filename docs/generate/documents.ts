import { api } from './api.ts'
import { bounds } from './bounds.ts'
import { cli } from './cli.ts'
import type { Document } from './document.ts'
import { errors } from './errors.ts'
import { programs, quickstart, trainer } from './examples.ts'
import { metrics } from './metrics.ts'
import { openapi } from './openapi.ts'
import { outcomes } from './outcomes.ts'

/** Everything that is made from the sources. */
export const DOCUMENTS: readonly Document[] = [
  quickstart,
  programs,
  trainer,
  bounds,
  outcomes,
  api,
  openapi,
  cli,
  errors,
  metrics,
]
