/** `sandlot audit`. */
import { Sandlot } from 'sandlot'
import { formatTable } from '../output/table.ts'
import { note, printJson, printLine } from '../output/terminal.ts'
import { given } from './options.ts'
import { timeOf } from './when.ts'

export interface AuditCommandOptions {
  readonly since?: string
  readonly until?: string
  readonly key?: string
  readonly json?: boolean
}

export async function auditCommand({
  since,
  until,
  key,
  json,
}: AuditCommandOptions): Promise<void> {
  await using client = new Sandlot()
  const entries = await Array.fromAsync(
    client.audit({
      ...given({ key }),
      ...(since === undefined ? {} : { from: timeOf('--since', since) }),
      ...(until === undefined ? {} : { to: timeOf('--until', until) }),
    }),
  )
  if (json) return printJson(entries)
  if (entries.length === 0) return note('nothing was changed or refused')
  const rows = entries.map((entry) => [
    ...[new Date(entry.atMs).toISOString(), entry.key ?? '-', entry.project ?? '-', entry.route],
    Object.values(entry.targets).join(' '),
    ...[`${entry.status}${entry.code === null ? '' : ` ${entry.code}`}`, entry.address ?? ''],
  ])
  printLine(formatTable(['TIME', 'KEY', 'PROJECT', 'WHAT', 'OF', 'ANSWER', 'FROM'], rows))
}
