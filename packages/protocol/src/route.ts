import { z } from 'zod'
import { LIMITS } from './limits.ts'

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE' | 'HEAD'
  /** Parameters as `:name`. */
  readonly path: string
  readonly summary: string
  readonly query?: z.ZodObject
  /** A JSON body, or `bytes` for a streamed one. */
  readonly body?: z.ZodType | 'bytes'
  /** A JSON answer, `bytes` for a stream, `lines` for one JSON value a line, `text`, or `none`. */
  readonly answer: z.ZodType | 'bytes' | 'lines' | 'text' | 'none'
  readonly status: number
}

/** Query of a list. */
export const page = {
  limit: z.coerce.number().int().min(1).max(LIMITS.itemsPerPage).optional(),
  after: z.string().optional(),
}

export function paged<T extends z.ZodType>(item: T) {
  return z.object({ items: z.array(item), next: z.string().nullable() })
}
