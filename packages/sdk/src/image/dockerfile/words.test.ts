import { expect, test } from 'vitest'
import { expandedText, type Lookup, rendered, wordsOf } from './words.ts'

const values: Readonly<Record<string, string>> = { V: '3.12', EMPTY: '', SPACED: 'a b' }
const lookup: Lookup = (name) => (name in values ? [values[name] ?? ''] : undefined)

test.each<[text: string, words: string[]]>([
  ['a  b\tc', ['a', 'b', 'c']],
  ['"a b" c', ['a b', 'c']],
  ["'a $V' c", ['a $V', 'c']],
  ['"a $V"', ['a 3.12']],
  ['a\\ b', ['a b']],
  ['\\$V', ['$V']],
  ['"\\$V \\x"', ['$V \\x']],
  ['python:$V-slim', ['python:3.12-slim']],
  ['python:${V}slim', ['python:3.12slim']],
  ['$SPACED', ['a b']],
  ['${EMPTY:-none} ${EMPTY-none}', ['none', '']],
  ['${V:-none} ${V:+some} ${EMPTY:+some}x', ['3.12', 'some', 'x']],
  ['${NOBODY:-$V}', ['3.12']],
  ['5$ $', ['5$', '$']],
  ['a="b c"d', ['a=b cd']],
])('%s', (text, words) => {
  expect(wordsOf(text, lookup).map((word) => word.join(''))).toEqual(words)
})

test('what only the base image can know is left to the daemon', () => {
  const [word] = wordsOf('/opt/$V:"$PATH"\\$x', lookup)
  expect(rendered(word ?? [])).toEqual({ value: '/opt/3.12:${PATH}$$x', expand: true })
  expect(rendered(wordsOf('a\\$b', lookup)[0] ?? [])).toEqual({ value: 'a$b', expand: false })
})

test('a here-document has variables but no quotes', () => {
  expect(expandedText('"$V" \'$V\' \\$V \\n', lookup).join('')).toBe('"3.12" \'3.12\' $V \\n')
})
