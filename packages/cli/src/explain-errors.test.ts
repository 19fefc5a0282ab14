import { CommanderError } from 'commander'
import { expect, test } from 'vitest'
import { makeProgram } from './program.ts'

type Command = ReturnType<typeof makeProgram>

test.each([
  ['exec sb_1 ls', ['(Did you mean sandlot sandbox exec?)', '(run `sandlot help` for the verbs)']],
  ['stop sb_1', ['(Did you mean sandlot sandbox stop?)', '(run `sandlot help` for the verbs)']],
  ['image list', ['(Did you mean images?)', '(run `sandlot help` for the verbs)']],
  ['nonsense', ['(run `sandlot help` for the verbs)']],
  [
    'sandbox watch r1',
    [
      '(Did you mean sandlot runs watch?)',
      '(run `sandlot help` for the verbs, `sandlot sandbox --help` for this one)',
    ],
  ],
  [
    'sandbox create',
    ['(run `sandlot help` for the verbs, `sandlot sandbox create --help` for this one)'],
  ],
])('sandlot %s', async (line, said) => {
  let written = ''
  const program = heard(makeProgram(), (text) => {
    written += text
  })
  const parsing = program.parseAsync(line.split(' '), { from: 'user' })
  await expect(parsing).rejects.toBeInstanceOf(CommanderError)
  const [first, ...rest] = written.trim().split('\n')
  expect(first).toMatch(/^error: /)
  expect(rest).toEqual(said)
})

function heard(program: Command, write: (text: string) => void): Command {
  program.configureOutput({ writeErr: write })
  for (const command of program.commands) heard(command, write)
  return program
}
