import { FRAME_LIMITS } from '@sandlot/protocol/frames'
import { userIds } from '../sandboxes/user.ts'
import { sandboxPathOf } from './sandbox-path.ts'
import type { Operation } from './session.ts'
import { INPUT, transfer } from './transfer.ts'

/** Unpacks a tar from the stream's data; what comes out belongs to the sandbox's user. */
export const tarIn: Operation<'tar.in'> = (stream, request, session) => {
  const content = stream.read(INPUT, { window: FRAME_LIMITS.fileWindow })
  return transfer(stream, request, session, async ({ guest, workdir, user }, signal) => {
    const { world = 'main', path } = request
    const owner = await userIds(guest, world, user, signal)
    const at = sandboxPathOf(workdir, path)
    return { ...(await guest.tar.in(world, at, content, owner, { signal })) }
  })
}
