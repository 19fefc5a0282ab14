import fc from 'fast-check'
import { expect, test } from 'vitest'
import { EscapeKeys } from './escape.ts'

function press(...pieces: string[]): [typed: string, asked: readonly string[]][] {
  const keys = new EscapeKeys()
  return pieces.map((piece) => {
    const { typed, asked } = keys.press(Buffer.from(piece))
    return [Buffer.from(typed).toString(), asked]
  })
}

test.for<[pieces: string[], outcome: [string, string[]][]]>([
  [['ls\r'], [['ls\r', []]]],
  [['~.'], [['', ['leave']]]],
  [['a\r~.rest'], [['a\r', ['leave']]]],
  [['a~.'], [['a~.', []]]],
  [
    ['\r', '~', '.'],
    [
      ['\r', []],
      ['', []],
      ['', ['leave']],
    ],
  ],
  [
    ['~?', '~.'],
    [
      ['', ['help']],
      ['', ['leave']],
    ],
  ],
  [['~?~.'], [['', ['help', 'leave']]]],
  [['~~.'], [['~.', []]]],
  [
    ['~x', '~.'],
    [
      ['~x', []],
      ['~.', []],
    ],
  ],
  [
    ['~\r', '~.'],
    [
      ['~\r', []],
      ['', ['leave']],
    ],
  ],
])('%j', ([pieces, outcome]) => {
  expect(press(...pieces)).toEqual(outcome)
})

test('keys without a tilde are typed as they are, however they come', () => {
  const plain = fc.uint8Array().map((keys) => keys.filter((key) => key !== 0x7e))
  fc.assert(
    fc.property(fc.array(plain), (pieces) => {
      const keys = new EscapeKeys()
      for (const piece of pieces) {
        expect(keys.press(piece)).toEqual({ typed: piece, asked: [] })
      }
    }),
  )
})
