import { invalidRequest, type Route, SandlotError } from '@sandlot/protocol'
import { z } from 'zod'

/**
 * The query of a route. What it doesn't know is refused, so that a misspelt parameter is noticed.
 * @throws SandlotError `invalid_request`
 */
export function parseQuery(route: Route, given: Record<string, string[]>): unknown {
  const shape = route.query?.shape ?? {}
  const flat: Record<string, unknown> = {}
  for (const [key, values] of Object.entries(given)) {
    if (!Object.hasOwn(shape, key)) {
      throw new SandlotError(
        'invalid_request',
        `query.${key.slice(0, 64)}: this route has no such parameter`,
      )
    }
    const many = takesMany(shape[key] as z.ZodType)
    if (!many && values.length > 1) {
      throw new SandlotError('invalid_request', `query.${key}: given more than once`)
    }
    flat[key] = many ? values : values[0]
  }
  const parsed = (route.query ?? z.object({})).safeParse(flat)
  if (!parsed.success) throw invalidRequest('query', parsed.error)
  return parsed.data
}

function takesMany(schema: z.ZodType): boolean {
  if (schema instanceof z.ZodOptional) return takesMany(schema.unwrap() as z.ZodType)
  return schema instanceof z.ZodArray
}
