import { LIMITS } from '@sandlot/protocol'

interface Listed {
  readonly id: string
  readonly createdAtMs: number
}

interface PageQuery {
  readonly after?: string | undefined
  readonly limit?: number | undefined
}

/**
 * One page of a list, oldest first. The cursor is a place in time, so that a page after one whose last item was removed meanwhile
 * goes on where that one stood.
 */
export function pageOf<T extends Listed>(
  all: readonly T[],
  { after, limit = Math.min(100, LIMITS.itemsPerPage) }: PageQuery,
): { readonly items: readonly T[]; readonly next: string | null } {
  const left = all
    .map((item) => ({ item, place: placeOf(item) }))
    .sort((a, b) => (a.place < b.place ? -1 : 1))
    .filter(({ place }) => after === undefined || place > after)
  const page = left.slice(0, limit)
  const last = page.at(-1)
  return {
    items: page.map(({ item }) => item),
    next: left.length > page.length && last ? last.place : null,
  }
}

function placeOf({ createdAtMs, id }: Listed): string {
  return `${String(createdAtMs).padStart(16, '0')}${id}`
}
