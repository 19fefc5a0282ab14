import type { Fate } from '@sandlot/runtime'
import { settlePause } from '../usage/settle-pause.ts'
import { endedOf, NO_USAGE, neverRan } from './ended.ts'
import { endsWithDaemon } from './owners.ts'
import type { OwnershipRecord } from './ownership.ts'
import type { NodeParts, NodeSandboxes } from './sandboxes.ts'
import { stopFirmly } from './stop-firmly.ts'

export interface Recovered {
  /** Found alive, and still wanted. */
  readonly adopted: number
  /** Found alive, and wanted by nobody, to be ended already, of a build or a function that ended with its daemon, or never given to anybody: ended. */
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
  for (const file of found.unreadable) {
    log.error({ file }, 'the state of a sandbox can’t be read, so it is ended')
  }
  for (const ending of endings.list(clock.now())) meter.ended(ending)
  const records = new Map((await ownership.list()).map((record) => [record.sandbox, record]))
  let adopted = 0
  let stopped = 0
  for (const sandbox of found.adopted) {
    const record = records.get(sandbox.id)
    records.delete(sandbox.id)
    if (record?.stop) {
      await recordEnd(parts, record, await stopFirmly(sandbox, parts))
      stopped += 1
    } else if (record && (endsWithDaemon(record.owner) || record.unready)) {
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
    const { pausedAtMs, stop } = record
    if (pausedAtMs !== undefined && !stop && (await checkpoints.has(record.sandbox))) {
      const settled = await settlePause(parts, record)
      sandboxes.adoptPaused(settled, await images.pin(record.image).catch(() => undefined))
      paused.add(record.sandbox)
      continue
    }
    await recordEnd(parts, record, fates.get(record.sandbox))
  }
  await checkpoints.sweep(paused)
  return { adopted, stopped, dead: mine.length - paused.size, paused: paused.size }
}

/** Records how one ended that an earlier daemon had; without a fate where nothing of it was found. */
async function recordEnd(
  { meter, endings, ownership, clock }: NodeParts,
  record: OwnershipRecord,
  found: Fate | undefined,
): Promise<void> {
  const { stop } = record
  const atMs = clock.now()
  const { cpuMs } = found?.usage ?? NO_USAGE
  const metered = await meter.foundDead(record, { cpuMs, networkBytes: record.networkBytes ?? 0 })
  const ended = found
    ? endedOf(record, {
        // Its memory may have ended it before; else what was asked for came about.
        fate: stop && found.kind === 'lost' ? { ...found, kind: 'stopped' } : found,
        ...{ stop, flags: [], diskBytes: 0, metered, atMs },
      })
    : neverRan(record, { stop: stop ?? GONE, metered, atMs })
  const traceless = !found && !stop
  await endings.record({ ended, record, ...(traceless ? { traceless } : {}) })
  await ownership.remove(record.sandbox)
}

const GONE = { kind: 'lost', detail: 'it did not survive while no daemon was there' } as const
