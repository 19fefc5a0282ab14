/** A Dockerfile as instructions: comments, continued lines, flags, argument lists and here-documents taken apart. */
import { SandlotError } from '@sandlot/protocol'
import { type Heredoc, heredocsOf } from './heredoc.ts'

export interface Instruction {
  /** In capitals. */
  readonly keyword: string
  /** From 1. */
  readonly line: number
  /** What takes the meaning of the next character away: `\`, or a backtick where the Dockerfile says so. */
  readonly escapeSign: string
  /** `--from=base` is `from`, `base`; one that stands twice is here twice. */
  readonly flags: readonly (readonly [name: string, value: string])[]
  /** What follows the flags, as one line; here-documents are left out, their marks are not. */
  readonly text: string
  /** The text, where it is an argument list in JSON. */
  readonly list: readonly string[] | undefined
  readonly heredocs: readonly Heredoc[]
  /** The text with its here-documents below it, as a shell reads it. */
  readonly shellText: string
}

const TAKE_HEREDOCS = new Set(['RUN', 'COPY', 'ADD'])

/** Takes a Dockerfile apart. @throws SandlotError `image_source_invalid` where it holds no instruction, or an open here-document */
export function instructionsOf(text: string): readonly Instruction[] {
  const lines = text.replace(/^\uFEFF/, '').split(/\r?\n/)
  const escapeSign = escapeOf(lines)
  const instructions: Instruction[] = []
  let at = 0
  while (at < lines.length) {
    if (isSkipped(lines[at])) at += 1
    else {
      const { instruction, next } = instructionAt(lines, at, escapeSign)
      instructions.push(instruction)
      at = next
    }
  }
  if (instructions.length > 0) return instructions
  throw new SandlotError('image_source_invalid', 'the Dockerfile holds no instruction', {
    hint: 'It begins with FROM and the name of an image.',
  })
}

/** A refusal that names the instruction and where it stands. */
export function refused(
  { keyword, line }: Pick<Instruction, 'keyword' | 'line'>,
  problem: string,
  hint: string,
): SandlotError {
  return new SandlotError(
    'image_source_invalid',
    `Dockerfile line ${line}: ${keyword} ${problem}`,
    { hint },
  )
}

/** By a directive: a comment `# escape=…` before anything that is no directive. */
function escapeOf(lines: readonly string[]): string {
  for (const line of lines) {
    const [, name = '', value = ''] = /^\s*#\s*([a-zA-Z]+)\s*=\s*(.+?)\s*$/.exec(line) ?? []
    if (!['escape', 'syntax', 'check'].includes(name.toLowerCase())) return '\\'
    if (name.toLowerCase() !== 'escape') continue
    if (value === '\\' || value === '`') return value
    throw new SandlotError(
      'image_source_invalid',
      `the Dockerfile says escape=${value.slice(0, 64)}`,
      { hint: 'It is \\ or `.' },
    )
  }
  return '\\'
}

function instructionAt(
  lines: readonly string[],
  at: number,
  escapeSign: string,
): { instruction: Instruction; next: number } {
  const { head, end } = headAt(lines, at, escapeSign)
  const [, word = '', rest = ''] = /^(\S+)(.*)$/s.exec(head.trim()) ?? []
  const keyword = word.toUpperCase()
  const { flags, text } = flagsOf(rest.trim())
  const line = at + 1
  const below = TAKE_HEREDOCS.has(keyword) ? lines.slice(end) : []
  const { heredocs, taken, open } = heredocsOf(text, below)
  if (open !== undefined) {
    // All that follows would be its text.
    const problem = 'has a here-document without its end'
    throw refused({ keyword, line }, problem, `End it with ${open}.`)
  }
  const shellText = [text, ...below.slice(0, taken)].join('\n')
  const parts = { flags, text, list: listOf(text), heredocs, shellText }
  return { instruction: { keyword, line, escapeSign, ...parts }, next: end + taken }
}

/** One logical line: continued lines joined, and comments and empty lines within them left out as Docker does. */
function headAt(
  lines: readonly string[],
  at: number,
  escapeSign: string,
): { head: string; end: number } {
  const sign = escapeSign === '\\' ? '\\\\' : escapeSign
  // Two of them are one that means itself.
  const continued = new RegExp(`(^|[^${sign}])${sign}[ \\t]*$`)
  let head = ''
  for (let end = at; end < lines.length; end += 1) {
    const line = lines[end] ?? ''
    if (end > at && isSkipped(line)) continue
    if (!continued.test(line)) return { head: head + line, end: end + 1 }
    head += line.replace(continued, '$1')
  }
  return { head, end: lines.length }
}

function isSkipped(line = ''): boolean {
  return /^\s*(#|$)/.test(line)
}

function flagsOf(text: string): Pick<Instruction, 'flags' | 'text'> {
  const flags: (readonly [string, string])[] = []
  let rest = text
  for (;;) {
    const found = /^--([a-z][a-z0-9-]*)(?:=("[^"]*"|\S*))?(?:\s+|$)/.exec(rest)
    if (!found) return { flags, text: rest }
    flags.push([found[1] ?? '', (found[2] ?? '').replace(/^"(.*)"$/, '$1')])
    rest = rest.slice(found[0].length)
  }
}

function listOf(text: string): readonly string[] | undefined {
  if (!text.startsWith('[')) return undefined
  try {
    const list: unknown = JSON.parse(text)
    const words = Array.isArray(list) && list.every((word) => typeof word === 'string')
    return words ? (list as string[]) : undefined
  } catch {
    return undefined
  }
}
