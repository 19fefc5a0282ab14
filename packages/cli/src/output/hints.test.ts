import { ERROR_CODES, SandlotError } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { makeProgram } from '../program.ts'
import { hintFor } from './hints.ts'

/** Calls, options and fields of the SDK. */
const OF_PROGRAMS =
  /\bawait\b|\b\w+\.\w+\(|\b(files|resources|client)\.\w+|\b(ifExists|ifIncompatible|recursive|exclusive|checkpointable): ?|`(force|exclusive|exclude)`|=>/

const every = ERROR_CODES.map(
  (code) => [code, hintFor(new SandlotError(code, 'it is so'))] as const,
)

test.each(every)('the hint of %s has the words of the command line', (_, hint) => {
  expect(hint).not.toMatch(OF_PROGRAMS)
})

test('options and verbs that hints name are there', () => {
  const help = allHelp(makeProgram())
  const text = every.map(([, hint]) => hint).join('\n')
  for (const [option] of text.matchAll(/--[a-z-]+/g)) {
    if (option !== '--help') expect(help).toContain(option)
  }
  for (const [, verb] of text.matchAll(/`sandlot ([a-z ]+?)(?: ID| NAME)?`/g)) {
    expect(help).toContain(`sandlot ${verb} `)
  }
})

test('what the daemon says of a field is said of the option', () => {
  const hint = "Take another name, or say ifExists: 'replace' to run it again."
  expect(hintFor(new SandlotError('run_differs', 'it is so', { hint }))).toBe(
    'Take another name, or say --if-exists replace to run it again.',
  )
})

test('a host of a secret is named by the option', () => {
  const hint =
    'A secret opens no way out: name the host in network, too, as { allow: ["a.org:80"] }.'
  expect(hintFor(new SandlotError('invalid_request', 'it is so', { hint }))).toBe(
    'A secret opens no way out: name the host, too, as --allow a.org:80.',
  )
})

test('what a place knows better is said as it is', () => {
  const error = new SandlotError('snapshot_in_use', 'it is so', { hint: 'Wait for the run.' })
  expect(hintFor(error)).toBe('Wait for the run.')
})

function allHelp(command: ReturnType<typeof makeProgram>): string {
  return [command.helpInformation(), ...command.commands.map(allHelp)].join('\n')
}
