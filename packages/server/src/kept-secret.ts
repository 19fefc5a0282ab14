import { chmod, readFile } from 'node:fs/promises'
import { SandlotError } from '@sandlot/protocol'
import { SERVER_LIMITS } from './limits.ts'
import { writeWhole } from './write-whole.ts'

/**
 * A secret of this daemon: one line of text in a file that its owner alone reads (mode 0600), made by `fresh` when there is none or
 * only a part of one. It never stands in the journal, and never in a log.
 */
export async function keptSecret(path: string, fresh: () => string): Promise<string> {
  const present = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return ''
    throw unreadable(path, error)
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

function unreadable(path: string, cause: NodeJS.ErrnoException): SandlotError {
  const why = cause.code === 'EISDIR' ? 'it is a directory' : cause.message
  return new SandlotError('invalid_request', `${path} can't be read: ${why}`, {
    hint: 'A secret of this daemon stands there. Put it back from a backup, or move away what is there and a new one is made.',
    cause,
  })
}
