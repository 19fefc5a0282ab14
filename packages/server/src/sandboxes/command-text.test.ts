import { expect, test } from 'vitest'
import { commandText } from './command-text.ts'

test.for([
  [['ls'], false, 'ls'],
  [['/bin/sh', '-c', 'echo a; sleep 1'], false, "/bin/sh -c 'echo a; sleep 1'"],
  [['a', ''], false, "a ''"],
  [['echo', "it's"], false, "echo 'it'\\''s'"],
  [['printf', 'a\nb\t\u001b[31m\\'], false, "printf $'a\\nb\\t\\x1b[31m\\\\'"],
  [['grüße'], false, "'grüße'"],
  [['cat', 'xxx'], true, 'cat xxx …'],
  [[], false, ''],
] as const)('%j', ([words, isCut, text]) => {
  expect(commandText(Buffer.from(words.join('\0')), isCut)).toBe(text)
})
