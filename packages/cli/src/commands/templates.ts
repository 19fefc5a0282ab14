/** `sandlot templates …`. */
import { Sandlot } from 'sandlot'
import { formatTable, formatTags } from '../output/table.ts'
import { note, printJson, printLine } from '../output/terminal.ts'
import { given, pairs } from './options.ts'

export interface ListTemplatesOptions {
  readonly name?: string
  readonly tag?: readonly string[]
  readonly json?: boolean
}

/** Each with what it needs: an image, and where its memory was saved the snapshot of that. */
export async function listTemplatesCommand(options: ListTemplatesOptions): Promise<void> {
  await using client = new Sandlot()
  const { name, tag = [], json } = options
  const wanted = { ...given({ name }), tags: pairs(tag, '--tag') }
  const templates = await Array.fromAsync(client.templates.list(wanted))
  if (json) return printJson(templates)
  if (templates.length === 0) return note('no templates')
  const rows = templates.map(({ id, name: named, kind, image, snapshot, createdAtMs, tags }) => [
    ...[id, named ?? '', kind, image, snapshot ?? ''],
    ...[new Date(createdAtMs).toISOString(), formatTags(tags)],
  ])
  const headings = ['ID', 'NAME', 'KIND', 'IMAGE', 'SNAPSHOT', 'CREATED', 'TAGS']
  printLine(formatTable(headings, rows))
}

export async function showTemplateCommand(id: string): Promise<void> {
  await using client = new Sandlot()
  printJson(await client.templates.get(id))
}

export async function deleteTemplateCommand(id: string): Promise<void> {
  await using client = new Sandlot()
  await client.templates.delete(id)
  note(`deleted ${id}`)
}
