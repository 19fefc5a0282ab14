import { stripVTControlCharacters } from 'node:util'
import { SandlotError } from '@sandlot/protocol'
import { CommanderError } from 'commander'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Interrupted } from '../commands/interruption.ts'
import { Failure, Mistake } from '../failure.ts'
import { reportFailure } from './funnel.ts'

let written = ''
beforeEach(() => {
  written = ''
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    written += text
    return true
  })
})
afterEach(() => {
  vi.restoreAllMocks()
})

/** Exit code and what was printed, without colours. */
function report(thrown: unknown): { code: number; text: string } {
  const code = reportFailure(thrown)
  return { code, text: stripVTControlCharacters(written) }
}

test('what a person can mend is told with the next command', () => {
  expect(report(new Failure('there is no Go', 'install Go'))).toEqual({
    code: 1,
    text: 'error: there is no Go\nhint:  install Go\n',
  })
})

test('a mistake of the caller has a code of its own', () => {
  expect(report(new Mistake('--keep is about images', 'say --all')).code).toBe(2)
  written = ''
  const { code, text } = report(new SandlotError('invalid_request', 'no such size'))
  expect(code).toBe(2)
  expect(text).toMatch(/^error: no such size \(invalid_request\)\nhint: {2}\S/)
})

test.each(['capacity', 'unreachable', 'disk_full', 'sandbox_gone'] as const)(
  '%s is nobody’s mistake',
  (code) => {
    expect(report(new SandlotError(code, 'it is so')).code).toBe(1)
  },
)

test('a fault of ours shows where it happened, and asks for a report', () => {
  const { code, text } = report(new TypeError('undefined is not a function'))
  expect(code).toBe(70)
  expect(text).toContain('TypeError: undefined is not a function\n    at ')
  expect(text).toContain('please report it')
})

test('whatever is thrown is told', () => {
  expect(report('just text')).toMatchObject({
    code: 70,
    text: expect.stringContaining('just text'),
  })
})

test('what a sandbox put into a message commands no terminal', () => {
  written = ''
  const thrown = new SandlotError('exec_failed', '/\x1b[2J\x9d0;x\x07 is\tno\nfile', {
    hint: 'a\rb',
  })
  reportFailure(thrown)
  expect(written).toContain('/\\x1b[2J\\x9d0;x\\x07 is\tno\nfile')
  expect(written).toContain('a\\x0db')
})

test('an interruption says nothing', () => {
  expect(report(new Interrupted())).toEqual({ code: 130, text: '' })
})

test('what went wrong first counts, not what cleaning up said', () => {
  const thrown = new SuppressedError(new Error('the daemon is gone'), new Interrupted())
  expect(report(thrown)).toEqual({ code: 130, text: '' })
})

test('a command line that can’t be parsed is a mistake, asking for help is none', () => {
  expect(report(new CommanderError(1, 'commander.unknownCommand', 'no')).code).toBe(2)
  expect(report(new CommanderError(0, 'commander.helpDisplayed', '')).code).toBe(0)
})
