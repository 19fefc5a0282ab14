/** `sandlot sandbox snapshot`, `sandlot snapshots …`. */
import { formatSize } from '@sandlot/protocol'
import { Sandlot } from 'sandlot'
import { formatTable, formatTags } from '../output/table.ts'
import { note, printJson, printLine } from '../output/terminal.ts'
import { given, pairs } from './options.ts'

export interface SnapshotCommandOptions {
  readonly name?: string
  readonly tag?: readonly string[]
  readonly exclude?: readonly string[]
  readonly memory?: boolean
  readonly onRestore?: string
}

export async function snapshotCommand(id: string, options: SnapshotCommandOptions): Promise<void> {
  await using client = new Sandlot()
  const sandbox = await client.sandboxes.get(id)
  const { name, tag = [], exclude = [], memory, onRestore } = options
  const snapshot = await sandbox.snapshot({
    kind: memory ? 'memory' : 'filesystem',
    ...given({ name, onRestore }),
    tags: pairs(tag, '--tag'),
    exclude: [...exclude],
  })
  for (const line of snapshot.warnings ?? []) note(line)
  printLine(snapshot.id)
}

export interface ListSnapshotsOptions {
  readonly name?: string
  readonly tag?: readonly string[]
  readonly all?: boolean
  readonly json?: boolean
}

export async function listSnapshotsCommand(options: ListSnapshotsOptions): Promise<void> {
  await using client = new Sandlot()
  const { name, tag = [], all, json } = options
  const wanted = { ...given({ name, all }), tags: pairs(tag, '--tag') }
  const snapshots = await Array.fromAsync(client.snapshots.list(wanted))
  if (json) return printJson(snapshots)
  if (snapshots.length === 0) return note('no snapshots')
  const rows = snapshots.map(({ id, name: named, kind, parent, sizeBytes, createdAtMs, tags }) => [
    ...[id, named ?? '', kind, parent, formatSize(sizeBytes)],
    ...[new Date(createdAtMs).toISOString(), formatTags(tags)],
  ])
  printLine(formatTable(['ID', 'NAME', 'KIND', 'PARENT', 'SIZE', 'CREATED', 'TAGS'], rows))
}

export async function showSnapshotCommand(id: string): Promise<void> {
  await using client = new Sandlot()
  printJson(await client.snapshots.get(id))
}

export async function deleteSnapshotsCommand(
  ids: readonly string[],
  { force = false }: { readonly force?: boolean },
): Promise<void> {
  await using client = new Sandlot()
  for (const id of ids) {
    await client.snapshots.delete(id, { force })
    note(`deleted ${id}`)
  }
}
