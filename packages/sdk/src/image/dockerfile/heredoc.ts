/** Here-documents of an instruction, as Docker finds them: each is a word of its own that begins with `<<`. */

export interface Heredoc {
  /** As it stands in the instruction: `<<-"EOF"`. */
  readonly mark: string
  readonly name: string
  readonly content: string
  /** False where its delimiter is quoted. */
  readonly expands: boolean
}

/** The marks of a line; `<<<` is none, nor is what stands within quotes or behind something else. */
const WORD = /(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*'|["'\\])+/gs
const MARK = /^\d*<<(-?)((?:[^\s<>|&;()"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+)/s

/**
 * The here-documents whose marks are in `text`, one behind the other in the lines that follow it, and how many lines they take.
 * Stops at the first that nothing ends.
 */
export function heredocsOf(
  text: string,
  lines: readonly string[],
): { heredocs: readonly Heredoc[]; taken: number; open?: string } {
  const heredocs: Heredoc[] = []
  let taken = 0
  for (const [word] of text.matchAll(WORD)) {
    const [mark, tabs, delimiter = ''] = MARK.exec(word) ?? []
    if (mark === undefined) continue
    const name = delimiter.replace(/\\(.)|["']/gs, '$1')
    const content: string[] = []
    for (; ; taken += 1) {
      const line = lines[taken]
      if (line === undefined) return { heredocs, taken, open: name }
      const cut = tabs ? line.replace(/^\t+/, '') : line
      if (cut === name) break
      content.push(`${cut}\n`)
    }
    taken += 1
    heredocs.push({ mark, name, content: content.join(''), expands: name === delimiter })
  }
  return { heredocs, taken }
}
