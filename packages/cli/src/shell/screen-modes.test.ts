import { expect, test } from 'vitest'
import { ScreenModes } from './screen-modes.ts'

const shown = (...pieces: string[]) => {
  const modes = new ScreenModes()
  for (const piece of pieces) modes.show(Buffer.from(piece, 'latin1'))
  return modes.off()
}

test.for<[pieces: string[], off: string]>([
  [['plain text \x1b[31mred'], ''],
  [['\x1b[?1049h'], '\x1b[?1049l\x1b[0m'],
  [['\x1b[?1049h', 'x', '\x1b[?1049l'], ''],
  [['\x1b[?25l'], '\x1b[?25h\x1b[0m'],
  [['\x1b[?25l\x1b[?25h'], ''],
  [['\x1b[?1000;1006h'], '\x1b[?1000l\x1b[?1006l\x1b[0m'],
  [['\x1b[?10', '49h'], '\x1b[?1049l\x1b[0m'],
  [['\x1b', '[?2004h'], '\x1b[?2004l\x1b[0m'],
  [['\x1b[?7h'], ''],
])('%j is put back by %j', ([pieces, off]) => {
  expect(shown(...pieces)).toBe(off)
})
