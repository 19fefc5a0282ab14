import { statView } from '../sandboxes/files.ts'
import { sandboxPathOf } from './sandbox-path.ts'
import type { Operation } from './session.ts'
import { sendAll, transfer } from './transfer.ts'

/** A file's bytes; the event `stat` says before them what it was when it was opened. */
export const fileRead: Operation<'file.read'> = (stream, request, session) =>
  transfer(stream, request, session, async ({ guest, workdir }, signal) => {
    const { world = 'main', path, offset, length } = request
    const range = {
      ...(offset === undefined ? {} : { offset }),
      ...(length === undefined ? {} : { length }),
    }
    const at = sandboxPathOf(workdir, path)
    const file = await guest.files.read(world, at, range, { signal })
    file.content.result.catch(() => {})
    stream.event({ kind: 'stat', stat: statView(file.stat) })
    await sendAll(stream, file.content)
    return { ...(await file.content.result) }
  })
