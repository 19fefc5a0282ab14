import { sandboxPathOf } from './sandbox-path.ts'
import type { Operation } from './session.ts'
import { sendAll, transfer } from './transfer.ts'

/** A directory's content, or one file, as a tar. */
export const tarOut: Operation<'tar.out'> = (stream, request, session) =>
  transfer(stream, request, session, async ({ guest, workdir }, signal) => {
    const { world = 'main', path } = request
    const tar = guest.tar.out(world, sandboxPathOf(workdir, path), { signal })
    tar.result.catch(() => {})
    await sendAll(stream, tar)
    return { ...(await tar.result) }
  })
