/** `sandlot templates …`. */
import { Sandlot } from 'sandlot'
import { formatTable } from '../output/table.ts'
import { note, printLine } from '../output/terminal.ts'

export async function listTemplatesCommand(options: { json?: boolean }): Promise<void> {
  await using client = new Sandlot()
  const templates = await Array.fromAsync(client.templates.list())
  if (options.json) {
    printLine(JSON.stringify(templates))
    return
  }
  const rows = templates.map(({ id, name, kind, image, createdAtMs }) => [
    id,
    name ?? '',
    kind,
    image,
    new Date(createdAtMs).toISOString(),
  ])
  printLine(formatTable(['ID', 'NAME', 'KIND', 'IMAGE', 'CREATED'], rows))
}

export async function showTemplateCommand(id: string): Promise<void> {
  await using client = new Sandlot()
  printLine(JSON.stringify(await client.templates.get(id), null, 2))
}

export async function deleteTemplateCommand(id: string): Promise<void> {
  await using client = new Sandlot()
  await client.templates.delete(id)
  note(`deleted ${id}`)
}
