/** `sandlot sandbox file-url`. */
import { Sandlot } from 'sandlot'
import { printLine } from '../output/terminal.ts'
import { given } from './options.ts'

export interface FileUrlCommandOptions {
  readonly upload?: boolean
  readonly expires?: string
}

export async function fileUrlCommand(
  id: string,
  path: string,
  { upload, expires }: FileUrlCommandOptions,
): Promise<void> {
  await using client = new Sandlot()
  const sandbox = await client.sandboxes.get(id)
  const method = upload ? 'PUT' : 'GET'
  printLine(await sandbox.files.url(path, { method, ...given({ expires }) }))
}
