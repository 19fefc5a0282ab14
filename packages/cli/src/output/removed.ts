import { formatSize, type ImagesRemoved } from '@sandlot/protocol'

/** `removed 3 images, freed 1.2 GiB`: what was removed, by its name or number, and what the disk has of it. */
export function describeRemoved({ removed, freedBytes }: ImagesRemoved, what: string): string {
  if (removed.length === 0) return 'nothing was there to remove'
  if (freedBytes > 0) return `removed ${what}, freed ${formatSize(freedBytes)}`
  return `removed ${what}, freed nothing: images that stay have the same layers`
}

/** `1 image`, `2 images`. */
export function counted(count: number, one: string, more: string): string {
  return `${count} ${count === 1 ? one : more}`
}
