import type { Clock } from '@sandlot/engine'
import { LIMITS } from '@sandlot/protocol'
import type { Logger } from 'pino'
import type { SandboxKeeper } from '../coordinator/leaving.ts'
import { SERVER_LIMITS } from '../limits.ts'
import type { SnapshotRecord } from './record.ts'
import type { Snapshots } from './snapshots.ts'
import { type SnapshotServices, takeFilesystem } from './take.ts'

/** Keeps the files of episodes' sandboxes as snapshots that no list shows unless all are asked for. */
export function sandboxKeeper(services: () => SnapshotServices): SandboxKeeper {
  return {
    async keep({ project, sandbox, snapshot, run, key }, { signal }) {
      const { snapshots, now } = services()
      if (snapshots.find(project, snapshot)) return
      const call = { params: { id: sandbox }, caller: { project }, signal }
      const body = { kind: 'filesystem', hidden: true, tags: tagsOf(run, key) } as const
      const untilMs = now() + SERVER_LIMITS.keptMs
      await takeFilesystem(services(), call, { ...body, untilMs }, snapshot)
    },
    async forget(project, isOfRun) {
      const { snapshots } = services()
      for (const { id } of await snapshots.list(project)) {
        if (isOfRun(id)) await remove(snapshots, { project, id })
      }
    },
  }
}

/** Removes those whose time is over, at once and then now and then, until disposed. */
export function forgetKept(
  { snapshots }: Pick<SnapshotServices, 'snapshots'>,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): Disposable {
  let cancel = clock.after(0, look)
  function look(): void {
    removeOld(snapshots, clock.now()).catch((error) =>
      log.warn({ err: error }, 'old files of sandboxes could not be removed'),
    )
    cancel = clock.after(SERVER_LIMITS.keptEveryMs, look)
  }
  return { [Symbol.dispose]: () => cancel() }
}

async function removeOld(snapshots: Snapshots, nowMs: number): Promise<void> {
  for (const record of snapshots.past(nowMs)) await remove(snapshots, record)
}

/** What was started from it goes on. */
async function remove(
  snapshots: Snapshots,
  { project, id }: Pick<SnapshotRecord, 'project' | 'id'>,
): Promise<void> {
  await snapshots.remove(project, id, true)
}

function tagsOf(run: string, key: string): Record<string, string> {
  const short = (text: string) => text.slice(0, LIMITS.tagLength).toWellFormed()
  return { run: short(run), key: short(key) }
}
