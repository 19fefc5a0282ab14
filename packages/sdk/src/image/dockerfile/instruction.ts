/** A Dockerfile as instructions: comments, continued lines, flags, argument lists and here-documents taken apart. */
import { SandlotError } from '@sandlot/protocol'
import { DockerfileParser, type Instruction as Parsed } from 'dockerfile-ast'

export interface Instruction {
  /** In capitals. */
  readonly keyword: string
  /** From 1. */
  readonly line: number
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

export interface Heredoc {
  readonly name: string
  readonly content: string
  /** False where its delimiter is quoted. */
  readonly expands: boolean
  /** A line with its name alone was found. */
  readonly ended: boolean
}

/** Takes a Dockerfile apart. @throws SandlotError `image_source_invalid` where it holds no instruction */
export function instructionsOf(text: string): readonly Instruction[] {
  const parsed = DockerfileParser.parse(text)
  const escapeCharacter = parsed.getEscapeCharacter()
  const lines = text.split(/\r?\n/)
  const instructions = parsed
    .getInstructions()
    .map((each) => instructionOf(each, lines, escapeCharacter))
  if (instructions.length > 0) return instructions
  throw new SandlotError('image_source_invalid', 'the Dockerfile holds no instruction', {
    hint: 'It begins with FROM and the name of an image.',
  })
}

/** A refusal that names the instruction and where it stands. */
export function refused(
  { keyword, line }: Instruction,
  problem: string,
  hint: string,
): SandlotError {
  return new SandlotError(
    'image_source_invalid',
    `Dockerfile line ${line}: ${keyword} ${problem}`,
    {
      hint,
    },
  )
}

function instructionOf(
  parsed: Parsed,
  lines: readonly string[],
  escapeCharacter: string,
): Instruction {
  const { start, end } = parsed.getRange()
  const own = lines.slice(start.line, end.line + 1)
  const { head, rest } = headOf(own, escapeCharacter)
  const keyword = parsed.getKeyword()
  const { flags, text } = flagsOf(head.trim().slice(keyword.length).trim())
  const heredocs = takesHeredocs(keyword) ? heredocsOf(text, rest) : []
  const shellText = heredocs.length > 0 ? [text, ...rest].join('\n') : text
  const line = start.line + 1
  const instruction = { keyword, line, flags, text, list: listOf(text), heredocs, shellText }
  const open = rest.length > 0 ? heredocs.find(({ ended }) => !ended) : undefined
  if (!open) return instruction
  // All that follows would be its text.
  throw refused(instruction, 'has a here-document without its end', `End it with ${open.name}.`)
}

/** The first logical line: continued lines joined, and comments and empty lines within them left out as Docker does. */
function headOf(
  lines: readonly string[],
  escapeCharacter: string,
): { head: string; rest: readonly string[] } {
  const continued = new RegExp(`${escapeCharacter === '\\' ? '\\\\' : escapeCharacter}[ \\t]*$`)
  let head = ''
  for (const [index, line] of lines.entries()) {
    if (index > 0 && /^\s*(#|$)/.test(line)) continue
    if (!continued.test(line)) return { head: head + line, rest: lines.slice(index + 1) }
    head += line.replace(continued, '')
  }
  return { head, rest: [] }
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

function takesHeredocs(keyword: string): boolean {
  return keyword === 'RUN' || keyword === 'COPY' || keyword === 'ADD'
}

function heredocsOf(text: string, body: readonly string[]): readonly Heredoc[] {
  const marks = [...text.matchAll(/<<(-?)(["']?)([A-Za-z_][A-Za-z0-9_.]*)\2/g)]
  let at = 0
  return marks.map(([, tabs, quote, name = '']) => {
    const content: string[] = []
    for (; at < body.length; at += 1) {
      const line = tabs ? (body[at] ?? '').replace(/^\t+/, '') : (body[at] ?? '')
      if (line === name) break
      content.push(`${line}\n`)
    }
    const ended = at < body.length
    at += 1
    return { name, content: content.join(''), expands: quote === '', ended }
  })
}
