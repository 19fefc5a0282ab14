import { localCopy } from '../image/copied-files.ts'
import type { HarborTask } from './task.ts'

/** A digest of all that is in a task's folder: names, modes and contents, without times. */
export async function harborDigest({ directory }: Pick<HarborTask, 'directory'>): Promise<string> {
  const { bytes, content } = await localCopy(directory, '/').tar()
  for await (const _ of bytes) {
    // What is known of it is known when it was read.
  }
  if (!content) throw new Error('a copied directory has a digest')
  return content()
}
