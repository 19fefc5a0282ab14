import { expect, test } from 'vitest'
import { expanded } from './expand.ts'

const env = { A: 'a', EMPTY: '', SIGNS: '$} $A', 'odd name': 'odd' }
/** Braces of a variable, which no template of this file means. */
const of = (name: string) => `$\{${name}}`

test.each([
  ['plain', 'plain'],
  ['$$5 $ $x', '$5 $ $x'],
  [`${of('A')}/${of('NONE')}/${of('EMPTY')}/${of('odd name')}`, 'a///odd'],
  [of('SIGNS'), env.SIGNS],
  [`${of('A:-x')} ${of('EMPTY:-x')} ${of('EMPTY-x')} ${of('NONE-x')}`, 'a x  x'],
  [`${of('A:+x')}|${of('EMPTY:+x')}|${of('EMPTY+x')}|${of('NONE+x')}`, 'x||x|'],
  [of(`NONE:-${of(`EMPTY:-${of('A')}`)}!`), 'a!'],
  [of('A:+$}$$'), '}$'],
  [of('A:?none'), 'a'],
  [of('toString'), ''],
  [of('__proto__'), ''],
])('%s', (text, result) => {
  expect(expanded(text, env)).toBe(result)
})

const deep = Array.from({ length: 100 }).reduce<string>((text) => of(`A:-${text}`), '')

test.each([
  [of('NONE:?say it'), /no value of "NONE": say it/],
  [of('EMPTY:?'), /no value of "EMPTY"/],
  [of('A').slice(0, -1), /nothing ends/],
  [deep, /too many inside/],
  [of('A:-').slice(0, -1).repeat(100_000), /too many inside/],
])('%s is refused', (text, says) => {
  expect(() => expanded(text, env)).toThrow(says)
})
