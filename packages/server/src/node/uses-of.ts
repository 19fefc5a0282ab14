import type { Node } from './node.ts'

/** How many sandboxes of a node live, or are being created, that have this image. */
export function usesOf({ sandboxes }: Node, image: string): number {
  return [...sandboxes.entries.values()].filter((entry) => entry.record.image === image).length
}
