import { expect, test } from 'vitest'
import { checkDuration, given, pairs } from './options.ts'

test('a duration without a unit is the caller’s mistake', () => {
  expect(() => checkDuration('30s', '--timeout')).not.toThrow()
  expect(() => checkDuration(undefined, '--timeout')).not.toThrow()
  expect(() => checkDuration('1', '--timeout')).toThrow(
    expect.objectContaining({
      code: 'invalid_request',
      message: expect.stringMatching(/^--timeout: "1" is not a duration/),
      hint: 'Write it as --timeout 30s.',
    }),
  )
})

test('what is left out stays left out', () => {
  expect(given({ a: undefined, b: 0, c: '' })).toEqual({ b: 0, c: '' })
})

test('a value may hold an equals sign, a name may not be empty', () => {
  expect(pairs(['A=b=c', 'B='], '--env')).toEqual({ A: 'b=c', B: '' })
  expect(() => pairs(['=x'], '--env')).toThrow('--env =x is not NAME=VALUE')
  expect(() => pairs(['/a'], '--file', 'PATH=FILE')).toThrow('--file /a is not PATH=FILE')
})
