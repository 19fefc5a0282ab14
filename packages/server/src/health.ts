import type { Handlers } from './http/call.ts'
import type { DiskWatch } from './node/disk-watch.ts'
import type { Serving } from './serving.ts'
import { VERSION } from './version.ts'

/** `GET /healthz`: answered in every state. */
export function healthHandler(
  serving: Serving,
  disk: Pick<DiskWatch, 'why'>,
): Pick<Handlers, 'health'> {
  return {
    health: async () => ({
      ok: serving.state === 'serving',
      version: VERSION,
      state: serving.state,
      ...(disk.why === undefined ? {} : { nothingNew: disk.why }),
    }),
  }
}
