import type { SandboxView, SnapshotView } from '@sandlot/protocol'
import type { Api } from './api.ts'

/** What runs in the memory. */
const SERVER = 'setsid python3 -m http.server 8000 > /dev/null 2>&1 &'
const LISTENS = 'until grep -q :1F40 /proc/net/tcp; do sleep 0.1; done'

/** Id of a memory snapshot of a sandbox over this image in which a server listens. */
export async function savedServer(api: Api, image: string): Promise<string> {
  const wanted = { from: image, checkpointable: true }
  const { id } = await api.json<SandboxView>('POST', '/v1/sandboxes', wanted)
  const path = `/v1/sandboxes/${id}`
  for (const command of [SERVER, LISTENS]) await api.json('POST', `${path}/exec`, { command })
  const snapshot = await api.json<SnapshotView>('POST', `${path}/snapshots`, { kind: 'memory' })
  await api.json('DELETE', path)
  return snapshot.id
}

/** Starts a sandbox from a snapshot and ends it; how long the start took. Throws where it came from elsewhere. Milliseconds. */
export async function timeStart(
  api: Api,
  from: string,
  origin: SandboxView['origin'],
): Promise<number> {
  const startedMs = performance.now()
  const view = await api.json<SandboxView>('POST', '/v1/sandboxes', { from })
  const elapsedMs = performance.now() - startedMs
  await api.json('DELETE', `/v1/sandboxes/${view.id}`)
  if (view.origin !== origin) throw new Error(`the sandbox is ${view.origin}, not ${origin}`)
  return elapsedMs
}
