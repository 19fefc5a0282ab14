import type { RouteName } from '@sandlot/protocol'
import type { ClientContext, Waiting } from './context.ts'

type Query = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>

/** All items of a list, page by page as they are read. */
export async function* pagesOf<T>(
  { http }: ClientContext,
  route: RouteName,
  { signal }: Waiting,
  query: Query = {},
  parameters: Readonly<Record<string, string>> = {},
): AsyncGenerator<T> {
  let after: string | undefined
  do {
    const asked = { ...query, ...(after === undefined ? {} : { after }) }
    const page: { items: T[]; next: string | null } = await http.json(route, {
      ...{ parameters, query: asked, signal },
    })
    yield* page.items
    after = page.next ?? undefined
  } while (after)
}
