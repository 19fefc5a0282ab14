import { expect, test } from 'vitest'
import { expandedText, type Reading, rendered, wordsOf } from './words.ts'

const values: Readonly<Record<string, string | null>> = {
  V: '3.12',
  EMPTY: '',
  SPACED: 'a b',
  UNSET: null,
  PATHS: 'a/b/c.tar.gz',
  STAR: 'x*y',
}
const reading: Reading = {
  lookup: (name) => {
    const value = values[name]
    return value === undefined || value === null ? value : [value]
  },
  escapeSign: '\\',
  wrong: (problem) => new Error(problem),
}

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
  ['${UNSET:-$V}', ['3.12']],
  ['5$ $', ['5$', '$']],
  ['a="b c"d', ['a=b cd']],
  ['${UNSET:-${EMPTY:-${V}}}', ['3.12']],
  ['${UNSET:-${EMPTY:-${UNSET:-d}e}f}g', ['defg']],
  ['"${UNSET:-"a b"}" c', ['a b', 'c']],
  ['${UNSET:-a b} c', ['a b', 'c']],
  ["${UNSET:-'}'}", ['}']],
  ['${UNSET:-\\}}', ['}']],
  ['${UNSET-u} ${EMPTY+e} ${UNSET+u}x', ['u', 'e', 'x']],
  ['${V:?gone} ${EMPTY?gone}', ['3.12', '']],
  ['$1 $@x ${1} ${@:-a}', ['', 'x', '', 'a']],
  ['${PATHS#*/} ${PATHS##*/}', ['b/c.tar.gz', 'c.tar.gz']],
  ['${PATHS%.*} ${PATHS%%.*}', ['a/b/c.tar', 'a/b/c']],
  ['${PATHS/b/B} ${PATHS//?.t/-}', ['a/B/c.tar.gz', 'a/b/-ar.gz']],
  ['${PATHS//\\//-} ${STAR/\\*/+} ${STAR//[xy]/z}', ['a-b-c.tar.gz', 'x+y', 'x*y']],
  ['${UNSET#x}y ${EMPTY%x}', ['y', '']],
])('%s', (text, words) => {
  expect(wordsOf(text, reading).map((word) => word.join(''))).toEqual(words)
})

test.each<[text: string, problem: string]>([
  ["it's", "has a ' that nothing ends"],
  ['say "so', 'has a " that nothing ends'],
  ['${V', 'has a ${V that nothing ends'],
  ['${V:-a', 'has a ${V:-a that nothing ends'],
  ['${V/a}', 'has a ${V/a} that nothing ends'],
  ['${}', 'holds "${}", which is no substitution'],
  ['${{V}}', 'holds "${{V}}", which is no substitution'],
  ['${V@Q}', 'holds "${V@Q}", which is no substitution'],
  ['${V:1:2}', 'holds "${V:1:2}", which is no substitution'],
  ['${V^^}', 'holds "${V^^}", which is no substitution'],
  ['${UNSET:?say which}', 'needs UNSET: say which'],
  ['${EMPTY:?}', 'needs EMPTY: it has no value'],
  ['${BASE#x}', 'uses ${BASE#x} of a variable that only the base image can have'],
  [`${'${V:-'.repeat(100)}${'}'.repeat(100)}`, 'more than 64 substitutions'],
])('%s is refused', (text, problem) => {
  expect(() => wordsOf(text, reading)).toThrow(problem)
})

test('what only the base image can know is left to the daemon', () => {
  const left = (text: string) => rendered(wordsOf(text, reading))
  expect(left('/opt/$V:"$PATH"\\$x')).toEqual({ values: ['/opt/3.12:${PATH}$$x'], expand: true })
  expect(left('a\\$b')).toEqual({ values: ['a$b'], expand: false })
  expect(left('a\\$b $PATH')).toEqual({ values: ['a$$b', '${PATH}'], expand: true })
  expect(left('/opt${LIBS:+:$LIBS}')).toEqual({ values: ['/opt${LIBS:+:${LIBS}}'], expand: true })
  expect(left('${LIBS:-${MORE-$V}\\}\\$}')).toEqual({
    values: ['${LIBS:-${MORE-3.12}$}$$}'],
    expand: true,
  })
})

test('a here-document has variables but no quotes', () => {
  const text = (given: string) => expandedText(given, reading).join('')
  expect(text('"$V" \'$V\' \\$V \\n')).toBe('"3.12" \'3.12\' $V \\n')
  expect(text("it's ${UNSET:-'a'} \\\\ ${UNSET:-\\}}")).toBe("it's 'a' \\\\ }")
})

test('another sign than a backslash may take a meaning away', () => {
  const other: Reading = { ...reading, escapeSign: '`' }
  expect(wordsOf('c:\\a` b `$V', other).map((word) => word.join(''))).toEqual(['c:\\a b', '$V'])
})
