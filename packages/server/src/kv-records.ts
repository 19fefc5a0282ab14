import type { Engine } from '@sandlot/engine'
import type { z } from 'zod'
import { decodeJson } from './json.ts'

/** All records below a prefix in order of key, read page by page and parsed. */
export async function* kvRecords<T>(
  kv: Engine['kv'],
  prefix: string,
  schema: z.ZodType<T>,
): AsyncGenerator<T> {
  for (let after: string | undefined; ; ) {
    const page = await kv.list(prefix, after === undefined ? {} : { after })
    for (const { value } of page.entries) yield schema.parse(decodeJson(value))
    after = page.next
    if (after === undefined) return
  }
}
