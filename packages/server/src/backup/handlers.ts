import { SandlotError } from '@sandlot/protocol'
import type { Handlers } from '../http/call.ts'
import { type BackupParts, backupArchive } from './archive.ts'

/** A backup has everything of all projects, and the key of this machine: nobody else may have one. */
export function backupHandlers(parts: BackupParts): Pick<Handlers, 'backUp'> {
  return {
    backUp: async ({ caller, query, signal }) => {
      if (!caller.isOperator) {
        throw new SandlotError('forbidden', 'a backup has what is of all projects', {
          hint: 'Use the key of the daemon’s own machine.',
        })
      }
      const body = backupArchive(parts, { images: query.images === 'true', signal })
      return { body, headers: { 'content-type': 'application/x-tar' } }
    },
  }
}
