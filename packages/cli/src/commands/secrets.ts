/** `sandlot secrets …`, and what of it `sandbox create` takes. */
import { createReadStream } from 'node:fs'
import { stdin } from 'node:process'
import { LIMITS, type SecretUsesInput } from '@sandlot/protocol'
import { Sandlot, SandlotError } from 'sandlot'
import { formatTable } from '../output/table.ts'
import { note, printJson, printLine } from '../output/terminal.ts'

/** Beyond it no secret is short enough. */
const READ_BYTES = 2 * LIMITS.secretLength

/** The value is the whole of standard input, or of a file, without one line end behind it. */
export async function setSecretCommand(
  name: string,
  { file }: { readonly file?: string },
): Promise<void> {
  if (file === undefined && stdin.isTTY) {
    throw new SandlotError('invalid_request', 'the value of a secret is read, and not typed', {
      hint: `Write it as \`sandlot secrets set ${name} < FILE\`, or with --file FILE: an argument would stand in the list of processes.`,
    })
  }
  const text = file === undefined ? await beginningOf(stdin) : await read(file)
  await using client = new Sandlot()
  await client.secrets.set(name, text.replace(/\r?\n$/, ''))
  note(`the secret ${name} is kept`)
}

export async function listSecretsCommand({ json }: { readonly json?: boolean }): Promise<void> {
  await using client = new Sandlot()
  const secrets = await Array.fromAsync(client.secrets.list())
  if (json) return printJson(secrets)
  if (secrets.length === 0) return note('no secrets')
  const rows = secrets.map(({ name, setAtMs }) => [name, new Date(setAtMs).toISOString()])
  printLine(formatTable(['NAME', 'SET'], rows))
}

export async function deleteSecretCommand(name: string): Promise<void> {
  await using client = new Sandlot()
  await client.secrets.delete(name)
  note(`deleted ${name}`)
}

/** `API_KEY=openai@api.example.org,*.example.com`: TLS with these hosts is taken part in, unless a port of plain HTTP is named. */
export function secretsOf(
  texts: readonly string[] = [],
  option = '--secret',
): { secrets?: SecretUsesInput } {
  if (texts.length === 0) return {}
  return { secrets: Object.fromEntries(texts.map((text) => secretOf(text, option))) }
}

function secretOf(text: string, option: string): [string, SecretUsesInput[string]] {
  const [, variable, from, named] = /^([^=]+)=([^@]+)@(.+)$/.exec(text) ?? []
  if (variable === undefined || from === undefined || named === undefined) {
    throw new SandlotError('invalid_request', `${option}: ${JSON.stringify(text)} is none`, {
      hint: `Write it as ${option} API_KEY=NAME@api.example.org, where NAME is one that \`sandlot secrets list\` shows.`,
    })
  }
  const hosts = named.split(',')
  const isPlain = hosts.every((host) => host.endsWith(':80'))
  return [variable, { from, hosts, ...(isPlain ? {} : { tls: 'terminate' as const }) }]
}

/** As much as tells that it is too long. */
async function beginningOf(stream: AsyncIterable<Buffer | string>): Promise<string> {
  const parts: Buffer[] = []
  let sizeBytes = 0
  for await (const part of stream) {
    parts.push(Buffer.from(part))
    sizeBytes += part.length
    if (sizeBytes > READ_BYTES) break
  }
  return Buffer.concat(parts).toString()
}

async function read(path: string): Promise<string> {
  try {
    return await beginningOf(createReadStream(path, { end: READ_BYTES }))
  } catch (cause) {
    throw new SandlotError('local_file_failed', `--file: ${(cause as Error).message}`, {
      hint: 'Name a file that can be read.',
      cause,
    })
  }
}
