import { expect, test } from 'vitest'
import { Mistake } from '../failure.ts'
import { shellCommand } from './shell.ts'

test.each([
  [[], { list: true, attach: 'ex_a' }, '--list, --attach and --kill'],
  [[], { attach: 'ex_a', kill: 'ex_b' }, '--list, --attach and --kill'],
  [['sh'], { attach: 'ex_a' }, 'has its command'],
  [[], { list: true, cwd: '/' }, 'has its command'],
])(
  'what can’t go together is refused before anything is asked: %j %j',
  async (argv, options, why) => {
    const failing = shellCommand('sb_none', argv, options)
    await expect(failing).rejects.toThrow(Mistake)
    await expect(failing).rejects.toThrow(why)
  },
)
