/** Marks of data sets that are not to be trained on: they are no part of what is asked. */
const CANARY_LINE = /^(<!--.*canary.*-->|#.*canary.*)$/i

/** What an agent is asked, from the text of an `instruction.md`: without the canary lines at its begin, and empty lines behind them. */
export function instructionOf(text: string): string {
  const lines = text.split('\n')
  const begin = lines.findIndex((line) => !CANARY_LINE.test(line.trim()))
  const rest = begin === -1 ? [] : lines.slice(begin)
  const first = rest.findIndex((line) => line.trim() !== '')
  return first === -1 ? '' : rest.slice(first).join('\n')
}
