import { expect, test } from 'vitest'
import { withGaps } from './log-gaps.ts'

const line = (seq: number) => ({ seq, task: 't', channel: 'stdout', text: `${seq}` }) as const
const texts = (seqs: readonly number[], next: number) =>
  withGaps(seqs.map(line), next).map(({ text }) => text)

test('lines that are gone are told by their number, once', () => {
  expect(texts([0, 1, 2], 0)).toEqual(['0', '1', '2'])
  const gone = expect.stringContaining('(3 lines were printed faster')
  expect(texts([5, 6], 2)).toEqual([gone, '5', '6'])
  expect(texts([0, 4], 0)).toEqual(['0', gone, '4'])
})

test('a daemon that was started again counts anew', () => {
  expect(texts([0, 1], 7)).toEqual(['0', '1'])
})
