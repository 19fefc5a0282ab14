import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Replay } from './replay.ts'

function shown(until: number, ...pieces: string[]): string {
  const replay = new Replay(until)
  let offset = 0
  const parts = pieces.map((piece) => {
    const bytes = Buffer.from(piece, 'latin1')
    const part = replay.show({ bytes, offset })
    offset += bytes.length
    return Buffer.from(part).toString('latin1')
  })
  return parts.join('')
}

test.for<[question: string]>([
  ['\x1b[6n'],
  ['\x1b[?6n'],
  ['\x1b[c'],
  ['\x1b[>c'],
  ['\x1b[>0c'],
  ['\x1b[?12$p'],
  ['\x1b[>q'],
  ['\x1b[?u'],
  ['\x1b[18t'],
  ['\x1bZ'],
  ['\x1bP+q436f\x1b\\\\'.replace('\\\\', '\\')],
  ['\x1b]11;?\x07'],
  ['\x1b]4;1;?\x1b\\\\'.replace('\\\\', '\\')],
  ['\x05'],
])('%j is asked once', ([question]) => {
  const text = `a${question}b`
  expect(shown(text.length, text)).toBe('ab')
  expect(shown(0, text)).toBe(text)
  for (let cut = 1; cut < text.length; cut++) {
    expect(shown(text.length, text.slice(0, cut), text.slice(cut)), `cut at ${cut}`).toBe('ab')
  }
})

test.for<[text: string]>([
  ['\x1b[31mred\x1b[0m'],
  ['\x1b[?1049h\x1b[2J\x1b[1;1H'],
  ['\x1b]0;a title\x07'],
  ['\x1b[8;24;80t'],
  ['\x1b(B\x1b='],
])('%j is shown again', ([text]) => {
  expect(shown(text.length, text)).toBe(text)
})

test('what is no question is shown whole, however it comes, and so is what is new', () => {
  const plain = fc.string({ unit: fc.constantFrom('a', '\x1b', '[', '1', ';', 'm', 'H', '\r') })
  fc.assert(
    fc.property(fc.array(plain), fc.nat(40), (pieces, until) => {
      expect(shown(until, ...pieces, 'end').endsWith('end')).toBe(true)
      expect(shown(until, ...pieces, 'end')).toBe(`${pieces.join('')}end`)
    }),
  )
})
