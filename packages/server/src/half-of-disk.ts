import { statfs } from 'node:fs/promises'

/** Of the disk that a directory lies on, in bytes. */
export async function halfOfDisk(directory: string): Promise<number> {
  const { bsize, blocks } = await statfs(directory)
  return Math.floor((bsize * blocks) / 2)
}
