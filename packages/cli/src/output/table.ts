import Table from 'cli-table3'

/**
 * Rows under headings, aligned, without frames: readable on a terminal and by `awk`. What came from elsewhere commands no terminal: control
 * characters but line feeds are shown as `\x1b`.
 */
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
  for (const row of rows) table.push(row.map(shown))
  return table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
}

function shown(cell: string): string {
  return cell.replace(/[^\P{Cc}\n]/gu, (control) => {
    const code = control.charCodeAt(0).toString(16).padStart(2, '0')
    return `\\x${code}`
  })
}

/** `team=a suite=unit`. */
export function formatTags(tags: Readonly<Record<string, string>>): string {
  return Object.entries(tags)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')
}
