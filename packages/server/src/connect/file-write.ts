import { FRAME_LIMITS } from '@sandlot/protocol/frames'
import { userIds } from '../sandboxes/user.ts'
import { sandboxPathOf } from './sandbox-path.ts'
import type { Operation } from './session.ts'
import { INPUT, transfer } from './transfer.ts'

/** Writes a file from the stream's data. */
export const fileWrite: Operation<'file.write'> = (stream, request, session) => {
  const content = stream.read(INPUT, { window: FRAME_LIMITS.fileWindow })
  return transfer(stream, request, session, async (lent, signal) => {
    const { world = 'main', path, mode, parents, append, exclusive } = request
    const owner = await userIds(lent.guest, world, request.user ?? lent.user, signal)
    const options = {
      ...owner,
      parents,
      append,
      exclusive,
      ...(mode === undefined ? {} : { mode }),
    }
    const at = sandboxPathOf(lent.workdir, path)
    return { ...(await lent.guest.files.write(world, at, content, options, { signal })) }
  })
}
