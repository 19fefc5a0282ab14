import type { Engine } from '@sandlot/engine'
import type { z } from 'zod'
import { decodeJson } from './json.ts'

type Page = Awaited<ReturnType<Engine['kv']['list']>>

/** All records below a prefix in order of key, read page by page and parsed. */
export async function* kvRecords<T>(
  kv: Engine['kv'],
  prefix: string,
  schema: z.ZodType<T>,
): AsyncGenerator<T> {
  for await (const { value } of kvEntries(kv, prefix)) yield schema.parse(decodeJson(value))
}

/** The same as they are kept. */
export async function* kvEntries(
  kv: Engine['kv'],
  prefix: string,
): AsyncGenerator<Page['entries'][number]> {
  for (let after: string | undefined; ; ) {
    const page = await kv.list(prefix, after === undefined ? {} : { after })
    yield* page.entries
    after = page.next
    if (after === undefined) return
  }
}
