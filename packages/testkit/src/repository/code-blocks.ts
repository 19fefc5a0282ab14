import { textOf } from './files.ts'

/** A fenced block of a page. */
export interface CodeBlock {
  readonly page: string
  /** Of its first line, from 1. */
  readonly line: number
  /** What stands behind the opening fence: `ts`, `sh`. */
  readonly language: string
  readonly text: string
}

export async function codeBlocks(page: string): Promise<CodeBlock[]> {
  const blocks: CodeBlock[] = []
  let open: { language: string; line: number; lines: string[] } | undefined
  for (const [index, line] of (await textOf(page)).split('\n').entries()) {
    const fence = /^```(\w*)/.exec(line)
    if (open && fence) {
      blocks.push({ page, line: open.line, language: open.language, text: open.lines.join('\n') })
      open = undefined
    } else if (open) open.lines.push(line)
    else if (fence) open = { language: fence[1] ?? '', line: index + 2, lines: [] }
  }
  if (open) throw new Error(`${page}:${open.line} opens a block that nothing closes`)
  return blocks
}
