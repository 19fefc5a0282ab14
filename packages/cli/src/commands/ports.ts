/** `sandlot sandbox ports` and `sandlot sandbox url`. */
import { Sandlot } from 'sandlot'
import { Mistake } from '../failure.ts'
import { formatTable } from '../output/table.ts'
import { note, printJson, printLine } from '../output/terminal.ts'
import { checkDuration, given } from './options.ts'

export async function portsCommand(id: string, { json }: { json?: boolean }): Promise<void> {
  await using client = new Sandlot()
  const ports = await (await client.sandboxes.get(id)).ports.list()
  if (json) return printJson(ports)
  if (ports.length === 0) return note('nothing listens in it')
  const rows = ports.map(({ port, addresses, reachable }) => [
    String(port),
    addresses.join(' '),
    reachable ? '' : 'not reachable: it listens on none of 127.0.0.1, 0.0.0.0, ::1 and ::',
  ])
  printLine(formatTable(['PORT', 'ADDRESSES', ''], rows))
}

export interface UrlOptions {
  readonly expires?: string
  readonly path?: string
  readonly named?: boolean
}

export async function urlCommand(id: string, port: string, options: UrlOptions): Promise<void> {
  const { expires, path, named } = options
  checkDuration(expires, '--expires')
  await using client = new Sandlot()
  const sandbox = await client.sandboxes.get(id)
  printLine(await sandbox.ports.url(parsePort(port), given({ expires, path, named })))
}

/** A port of a sandbox, as it is typed. */
export function parsePort(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (port >= 1 && port <= 65_535) return port
  throw new Mistake(`${JSON.stringify(text)} is no port`, 'name one from 1 to 65535')
}
