/** What the file system of this machine refuses, as an error that says what to do. */
import { getSystemErrorMap } from 'node:util'
import { SandlotError } from '@sandlot/protocol'

const HINTS: Readonly<Record<string, string>> = {
  ENOENT: 'Check the path.',
  EISDIR: 'A directory is there: name the file itself, for example DIRECTORY/NAME.',
  ENOTDIR: 'A part of the path is a file: choose another place.',
  EEXIST: 'Something of another kind is there: remove it, or choose another place.',
  ENOTEMPTY: 'A directory is there: name the file itself, for example DIRECTORY/NAME.',
  EACCES: 'Run as a user who may do this, or choose another place.',
  EPERM: 'Run as a user who may do this, or choose another place.',
  EROFS: 'The file system is read-only: choose another place.',
  ENOSPC: 'The disk of this machine is full: free some space, or choose another place.',
  EDQUOT: 'The quota of this user is used up: free some space, or choose another place.',
  EMFILE: 'This process has too many files open: raise its limit (`ulimit -n`).',
  ENFILE: 'This machine has too many files open.',
  ENAMETOOLONG: 'A name is too long for this file system: choose another place, or rename it.',
  EILSEQ:
    'The file system takes no names that are not UTF-8: rename it in the sandbox, or choose another place.',
  ELOOP: 'The links on the way lead in a circle.',
}

/** An error of the system as `local_file_failed`; any other one as it is. `doing` begins the message: `cannot write /a/b`. */
export function localFailure(thrown: unknown, doing: string): unknown {
  if (!(thrown instanceof Error) || thrown instanceof SandlotError) return thrown
  const { code, errno, syscall } = thrown as NodeJS.ErrnoException
  if (code === undefined || syscall === undefined) return thrown
  const words = getSystemErrorMap().get(errno ?? 0)?.[1] ?? thrown.message
  const hint = HINTS[code]
  return new SandlotError('local_file_failed', `${doing}: ${words} (${code})`, {
    ...(hint ? { hint } : {}),
    details: { errno: code },
    cause: thrown,
  })
}

/** The bytes of a file of this machine, from its beginning. */
export async function* localBytes(
  open: () => AsyncIterable<Uint8Array>,
  path: string,
): AsyncGenerator<Uint8Array> {
  try {
    yield* open()
  } catch (error) {
    throw localFailure(error, `cannot read ${path}`)
  }
}
