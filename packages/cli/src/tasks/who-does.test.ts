import { expect, test } from 'vitest'
import { whoDoes } from './who-does.ts'

test.each(['oracle', 'nop'])('%s is scripted', (agent) => expect(whoDoes(agent)).toBe(agent))

test.each(['python3 /agent.py', './oracel', '/bin/nopp', 'true', 'sh'])(
  '%s is a command',
  (command) => expect(whoDoes(command)).toEqual({ command }),
)

test.each([
  ['oracel', 'oracle'],
  ['Oracle', 'oracle'],
  ['oracl', 'oracle'],
  ['npo', 'nop'],
  ['noop', 'nop'],
])('%s is nearly %s, and no command', (agent, meant) => {
  expect(() => whoDoes(agent)).toThrow(`"${agent}" is nearly ${meant}`)
})
