import { expect, test } from 'vitest'
import { Commands } from './commands.ts'
import type { Lent } from './lend.ts'

test('a command whose client leaves while its begin is prepared is not begun', async () => {
  const leave = new AbortController()
  const begun: unknown[] = []
  const lent = {
    id: 'sb_1',
    heldUpMs: async () => {
      leave.abort(new Error('the client left'))
      return 0
    },
    guest: { exec: { run: async (spec: unknown) => begun.push(spec) } },
    explain: async (error: unknown) => error,
  }
  const request = { sandbox: 'sb_1', exec: 'ex_1', argv: ['true'] }
  const how = { keep: false, unless: leave.signal }
  const running = new Commands().run(lent as unknown as Lent, request, how)
  await expect(running).rejects.toThrow('the client left')
  expect(begun).toEqual([])
})
