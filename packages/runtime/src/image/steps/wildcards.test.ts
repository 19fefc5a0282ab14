import { expect, test } from 'vitest'
import { hasWildcards, matchesName } from './wildcards.ts'

test.each([
  ['*', 'anything', true],
  ['*', '', true],
  ['*.txt', 'a.txt', true],
  ['*.txt', 'a.txt.gz', false],
  ['a*b*c', 'a-b-b-c', true],
  ['a*b*c', 'a-b-b', false],
  ['?', 'a', true],
  ['?', '', false],
  ['?', 'ab', false],
  ['[a-c]x', 'bx', true],
  ['[a-c]x', 'dx', false],
  ['[^a-c]x', 'dx', true],
  ['[^a-c]x', 'ax', false],
  ['[]]', ']', true],
  ['[a-]', '-', true],
  ['[', '[', true],
  ['\\*', '*', true],
  ['\\*', 'a', false],
  ['plain', 'plain', true],
  ['plain', 'plains', false],
])('%s and %s: %s', (pattern, name, expected) => {
  expect(matchesName(pattern, name)).toBe(expected)
})

test('a pattern of many stars takes no time', () => {
  expect(matchesName(`${'*a'.repeat(120)}*b`, 'a'.repeat(255))).toBe(false)
})

test('names without wildcards are told apart', () => {
  expect(hasWildcards('a.b-c')).toBe(false)
  for (const name of ['*', 'a?', '[a]', '\\a']) expect(hasWildcards(name)).toBe(true)
})
