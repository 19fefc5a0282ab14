import Table from 'cli-table3'
import { shownControls } from './control-characters.ts'

/** Rows under headings, aligned, without frames: readable on a terminal and by `awk`. */
export function formatTable(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const table = new Table({
    head: [...headings],
    chars: {
      top: '',
      'top-mid': '',
      'top-left': '',
      'top-right': '',
      bottom: '',
      'bottom-mid': '',
      'bottom-left': '',
      'bottom-right': '',
      left: '',
      'left-mid': '',
      mid: '',
      'mid-mid': '',
      right: '',
      'right-mid': '',
      middle: '  ',
    },
    style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [] },
  })
  // A row is one line, whatever an error or a key has in it.
  for (const row of rows) table.push(row.map((cell) => shownControls(cell.replaceAll('\n', '\\n'))))
  return table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
}

/** `team=a suite=unit`. */
export function formatTags(tags: Readonly<Record<string, string>>): string {
  return Object.entries(tags)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')
}
