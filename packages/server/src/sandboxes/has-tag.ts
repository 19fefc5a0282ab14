import type { Tags } from '@sandlot/protocol'

/** `key=value`, or `key` alone for any value. */
export function hasTag(tags: Tags, tag: string): boolean {
  const equals = tag.indexOf('=')
  if (equals < 0) return Object.hasOwn(tags, tag)
  return tags[tag.slice(0, equals)] === tag.slice(equals + 1)
}
