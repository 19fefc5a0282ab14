/** `sandlot keys …`. */
import { open, rm } from 'node:fs/promises'
import { type KeyView, Sandlot, SandlotError, type Scope } from 'sandlot'
import { formatTable } from '../output/table.ts'
import { note, printJson, printLine } from '../output/terminal.ts'
import { given } from './options.ts'

export interface CreateKeyOptions {
  readonly scope: Scope
  readonly project?: string
  readonly name?: string
  readonly expires?: string
  readonly output?: string
  readonly json?: boolean
}

export async function createKeyCommand(options: CreateKeyOptions): Promise<void> {
  const { scope, project, name, expires, output, json } = options
  // Before there is a key whose text could be lost.
  await using file = output === undefined ? undefined : await newFile(output)
  await using client = new Sandlot()
  const made = await client.keys
    .create({ scope, ...given({ project, name, expires }) })
    .catch(async (error: unknown) => {
      // An empty file would be taken for a key, and be in the way of the next try.
      if (output !== undefined) await rm(output, { force: true })
      throw error
    })
  const { key, ...view } = made
  if (file) await file.writeFile(`${key}\n`)
  if (json) return printJson(file ? view : made)
  note(`${view.id}: scope ${scope}, project ${view.project}, ${until(view)}`)
  if (file) return note(`its text is in ${output}`)
  note('This is its text, shown this once; whoever uses it sets SANDLOT_API_KEY:')
  printLine(key)
}

async function newFile(path: string) {
  try {
    return await open(path, 'wx', 0o600)
  } catch (cause) {
    const message = `--output: cannot make ${path}: ${(cause as Error).message}`
    throw new SandlotError('local_file_failed', message, {
      hint: 'Name a file that is not there yet, in a directory that is.',
      cause,
    })
  }
}

export async function listKeysCommand({ json }: { readonly json?: boolean }): Promise<void> {
  await using client = new Sandlot()
  const keys = await Array.fromAsync(client.keys.list())
  if (json) return printJson(keys)
  const rows = keys.map((key) => [
    ...[key.id, key.project, key.scope, key.name ?? ''],
    ...[new Date(key.createdAtMs).toISOString(), until(key)],
  ])
  printLine(formatTable(['ID', 'PROJECT', 'SCOPE', 'NAME', 'CREATED', 'GOOD'], rows))
}

export async function revokeKeysCommand(ids: readonly string[]): Promise<void> {
  await using client = new Sandlot()
  for (const id of ids) {
    await client.keys.revoke(id)
    note(`revoked ${id}`)
  }
}

function until({ expiresAtMs }: KeyView): string {
  if (expiresAtMs === null) return 'until revoked'
  const at = new Date(expiresAtMs).toISOString()
  return expiresAtMs > Date.now() ? `until ${at}` : `expired at ${at}`
}
