import { expect, test } from 'vitest'
import { instructionOf } from './instruction.ts'

test.each([
  ['Do it.\n', 'Do it.\n'],
  ['<!-- a CANARY of somebody -->\n\n\nDo it.\n# not a canary', 'Do it.\n# not a canary'],
  ['# canary 1\n# Canary 2\n\nDo it.', 'Do it.'],
  ['# A heading\nDo it.', '# A heading\nDo it.'],
  ['Do it.\n# canary', 'Do it.\n# canary'],
  ['\r\n# canary\r\nDo it.\r\n', '# canary\r\nDo it.\r\n'],
  ['# canary', ''],
  ['', ''],
])('%j is the instruction %j', (text, instruction) => {
  expect(instructionOf(text)).toBe(instruction)
})
