import { expect, test } from 'vitest'
import { formatTable } from './table.ts'

test('columns are aligned, without frames and without blanks at the end', () => {
  const rows = [
    ['one', '1', ''],
    ['two and more', '22', 'x'],
  ]
  const lines = formatTable(['NAME', 'N', 'WHY'], rows).split('\n')
  expect(lines).toEqual([
    'NAME          N   WHY', //
    'one           1',
    'two and more  22  x',
  ])
})

test('headings alone are a table too', () => {
  expect(formatTable(['A', 'B'], [])).toBe('A  B')
})

test('no cell commands the terminal', () => {
  const [, row] = formatTable(['NAME'], [['a\u001b[2Jb\u0007\tc']]).split('\n')
  expect(row).toBe('a\\x1b[2Jb\\x07\\x09c')
})

test('a row is one line', () => {
  const rows = [['the tests said:\nno', 'x']]
  expect(formatTable(['WHY', 'N'], rows).split('\n')[1]).toBe('the tests said:\\nno  x')
})
