import { settlePause } from '../usage/settle-pause.ts'
import { endedOf, NO_USAGE, neverRan } from './ended.ts'
import { endsWithDaemon } from './owners.ts'
import type { NodeParts, NodeSandboxes } from './sandboxes.ts'

export interface Recovered {
  /** Found alive, and still wanted. */
  readonly adopted: number
  /** Found alive, and wanted by nobody, by a build or a function that ended with its daemon, or never given to anybody: ended. */
  readonly stopped: number
  /** Wanted, and dead: their endings are recorded. */
  readonly dead: number
  /** Their memory is on disk. */
  readonly paused: number
}

/**
 * Brings the register in line with what an earlier daemon left: the driver says what lives, `kv sandbox/<id>` says what is wanted.
 * Called once, before anything else.
 */
export async function recoverNode(
  parts: NodeParts,
  sandboxes: NodeSandboxes,
  wait: { readonly signal?: AbortSignal } = {},
): Promise<Recovered> {
  const { driver, ownership, endings, images, checkpoints, meter, clock, node, log } = parts
  const found = await driver.recover(wait)
  for (const ending of endings.list(clock.now())) meter.ended(ending)
  const records = new Map((await ownership.list()).map((record) => [record.sandbox, record]))
  let adopted = 0
  let stopped = 0
  for (const sandbox of found.adopted) {
    const record = records.get(sandbox.id)
    records.delete(sandbox.id)
    if (record && (endsWithDaemon(record.owner) || record.unready)) {
      await driver.stop(sandbox, wait)
      await meter.foundDead(record, NO_USAGE)
      await ownership.remove(record.sandbox)
      stopped += 1
    } else if (record && record.node === node) {
      const pinned = await images.pin(record.image).catch(() => undefined)
      // It lives: what of its memory is on disk is of a pause or a resume that a daemon did not see through.
      await checkpoints.remove(record.sandbox)
      const { pausedAtMs: _, ...running } = record
      const meteredFromMs = meter.adoptedFromMs(record)
      sandboxes.adopt({ ...running, meteredFromMs }, sandbox, pinned)
      adopted += 1
    } else {
      log.warn({ sandbox: sandbox.id }, 'a sandbox that nobody owns is ended')
      await driver.stop(sandbox, wait)
      stopped += 1
    }
  }
  const fates = new Map(found.ended.map(({ id, fate }) => [id, fate]))
  const mine = [...records.values()].filter((record) => record.node === node)
  const paused = new Set<string>()
  for (const record of mine) {
    if (record.pausedAtMs !== undefined && (await checkpoints.has(record.sandbox))) {
      const settled = await settlePause(parts, record)
      sandboxes.adoptPaused(settled, await images.pin(record.image).catch(() => undefined))
      paused.add(record.sandbox)
      continue
    }
    const fate = fates.get(record.sandbox)
    const atMs = clock.now()
    const detail = 'it did not survive while no daemon was there'
    const { cpuMs } = fate?.usage ?? NO_USAGE
    const used = { cpuMs, networkBytes: record.networkBytes ?? 0 }
    const metered = await meter.foundDead(record, used)
    const ended = fate
      ? endedOf(record, { fate, flags: [], diskBytes: 0, metered, atMs })
      : neverRan(record, { stop: { kind: 'lost', detail }, metered, atMs })
    await endings.record({ ended, record, ...(fate ? {} : { traceless: true }) })
    await ownership.remove(record.sandbox)
  }
  await checkpoints.sweep(paused)
  return { adopted, stopped, dead: mine.length - paused.size, paused: paused.size }
}
