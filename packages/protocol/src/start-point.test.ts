import { expect, test } from 'vitest'
import { startableName } from './start-point.ts'

test.each(['a', 'my box', 'setup/0f', 'run_tests', 'v1.2', '…', 'smile 🙂', 'snapshots'])(
  'a name %j',
  (name) => {
    expect(startableName.parse(name)).toBe(name)
  },
)

test.each([
  ['im_te1ysdqwpodmeuhq2i0q', 'as an id'],
  ['sn_x', 'as an id'],
  ['snapshot:x', 'before a name'],
  ['template:x', 'before a name'],
  ['.', 'control'],
  ['..', 'control'],
  ['a\nb', 'control'],
  [' a', 'blanks'],
  ['a ', 'blanks'],
  ['', 'expected'],
])('no name %j', (name, why) => {
  expect(startableName.safeParse(name).error?.issues[0]?.message).toContain(why)
})
