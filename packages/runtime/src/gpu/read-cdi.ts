import { readdir, readFile, stat } from 'node:fs/promises'
import { extname, join } from 'node:path'
import type { LineCounter, Node } from 'yaml'
import { RUNTIME_LIMITS } from '../limits.ts'
import { type CdiFile, cdiFile } from './cdi-file.ts'

/** A file that can't be used, in one line that names it. */
export interface CdiProblem {
  readonly path: string
  /** From 1, where it can be told. */
  readonly line?: number
  readonly message: string
}

export interface CdiFound {
  readonly files: readonly { readonly path: string; readonly file: CdiFile }[]
  readonly problems: readonly CdiProblem[]
}

const ENDINGS = new Set(['.yaml', '.yml', '.json'])

/** All files of the directories in their order: a device goes before one of the same name that was read before it. */
export async function readCdiDirectories(directories: readonly string[]): Promise<CdiFound> {
  const files: { path: string; file: CdiFile }[] = []
  const problems: CdiProblem[] = []
  for (const directory of directories) {
    const names = (await readdir(directory).catch(() => [])).filter((name) =>
      ENDINGS.has(extname(name)),
    )
    for (const name of names.sort()) {
      const path = join(directory, name)
      const read = await readCdiFile(path)
      if ('message' in read) problems.push(read)
      else files.push({ path, file: read })
    }
  }
  return { files, problems }
}

/** JSON is YAML too. */
export async function readCdiFile(path: string): Promise<CdiFile | CdiProblem> {
  let text: string
  try {
    const { size } = await stat(path)
    if (size > RUNTIME_LIMITS.cdiBytesMax) {
      return { path, message: `has ${size} bytes; at most ${RUNTIME_LIMITS.cdiBytesMax} are read` }
    }
    text = await readFile(path, 'utf8')
  } catch (error) {
    return { path, message: `can't be read: ${(error as Error).message}` }
  }
  return await parseCdi(path, text)
}

export async function parseCdi(path: string, text: string): Promise<CdiFile | CdiProblem> {
  const { LineCounter, parseDocument } = await import('yaml')
  const lineCounter = new LineCounter()
  const document = parseDocument(text, { lineCounter, uniqueKeys: true })
  const [error] = document.errors
  if (error) {
    const line = error.linePos?.[0].line
    const [message = ''] = error.message.split('\n')
    return {
      path,
      ...(line === undefined ? {} : { line }),
      message: message.replace(/ at line .*/, ''),
    }
  }
  let value: unknown
  try {
    value = document.toJS({ maxAliasCount: RUNTIME_LIMITS.cdiAliasesMax })
  } catch (cause) {
    return { path, message: (cause as Error).message }
  }
  const parsed = cdiFile.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const at = issue?.path ?? []
  const line = lineOf((keys) => document.getIn(keys, true) as Node | undefined, at, lineCounter)
  const field = at.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('')
  const message = `${field.slice(1) || 'it'}: ${issue?.message}`
  return { path, ...(line === undefined ? {} : { line }), message }
}

export function describeCdiProblem({ path, line, message }: CdiProblem): string {
  return `${path}${line === undefined ? '' : `:${line}`}: ${message}`
}

/** Of the innermost part that is there: what is missing has no line of its own. */
function lineOf(
  find: (keys: readonly PropertyKey[]) => Node | undefined,
  at: readonly PropertyKey[],
  lines: LineCounter,
): number | undefined {
  for (let depth = at.length; depth > 0; depth--) {
    const range = find(at.slice(0, depth))?.range
    if (range) return lines.linePos(range[0]).line
  }
  return undefined
}
