import { chmod, readFile } from 'node:fs/promises'
import { SERVER_LIMITS } from './limits.ts'
import { writeWhole } from './write-whole.ts'

/**
 * A secret of this daemon: one line of text in a file that its owner alone reads (mode 0600), made by `fresh` when there is none or
 * only a part of one. It never stands in the journal, and never in a log.
 */
export async function keptSecret(path: string, fresh: () => string): Promise<string> {
  const present = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
  const secret = present.trim()
  if (secret.length >= SERVER_LIMITS.secretLengthMin) {
    await chmod(path, 0o600)
    return secret
  }
  const made = fresh()
  await writeWhole(path, `${made}\n`, 0o600)
  return made
}
