/** Text that reaches the kernel of a sandbox. What it can't take is refused here, where the field has a name. */
import { z } from 'zod'
import { LIMITS } from './limits.ts'
import { wholeText } from './whole-text.ts'

/** An argument, a value, a path. */
export const kernelText = wholeText.refine((text) => !text.includes('\0'), 'holds a NUL character')

export const USER_FORM = 'not a user: write NAME or UID, or USER:GROUP'

/** `NAME` or `UID`, or one of them with `:` and the name or number of a group. */
export const userName = kernelText
  .min(1, 'the user is empty')
  .max(LIMITS.userLength)
  .regex(/^[^:\s]+(?::[^:\s]+)?$/, USER_FORM)

/** Where commands start: an absolute path. */
export const workingDirectory = kernelText
  .startsWith('/', 'not an absolute path')
  .max(LIMITS.pathBytes)

export const environment = z
  .record(
    kernelText.regex(/^[^=]+$/, 'a name of an environment variable is not empty and holds no ='),
    kernelText,
  )
  .refine(
    (value) => Object.keys(value).length <= LIMITS.envItems,
    `more than ${LIMITS.envItems} variables`,
  )
  .refine(
    (value) => environmentBytes(Object.entries(value)) <= LIMITS.envBytes,
    `longer than ${LIMITS.envBytes} bytes: write it to a file in the sandbox`,
  )

/** Of names and values, as the kernel counts them. */
export function environmentBytes(entries: readonly (readonly [string, string])[]): number {
  return entries.reduce((sum, [name, value]) => sum + utf8Bytes(name) + utf8Bytes(value) + 2, 0)
}

/** Of arguments, as the kernel counts them. */
export function argumentBytes(argv: readonly string[]): number {
  return argv.reduce((sum, argument) => sum + utf8Bytes(argument) + 1, 0)
}

/** Why a command with these does not start; undefined where it does. `whose` says what is among the variables. */
export function startProblem(
  argv: readonly string[],
  env: readonly (readonly [string, string])[],
  whose = '',
): string | undefined {
  // A character has three bytes at the most: few commands need to be counted.
  const texts = [...argv, ...env.flat()]
  if (3 * texts.reduce((sum, { length }) => sum + length + 2, 0) <= LIMITS.startBytes) return
  const [arguments_, environment] = [argumentBytes(argv), environmentBytes(env)]
  if (arguments_ + environment <= LIMITS.startBytes) return
  return `the command does not start: its arguments (${arguments_} bytes) and its environment (${environment} bytes${whose}) are more than ${LIMITS.startBytes} bytes together`
}

function utf8Bytes(text: string): number {
  return encoder.encode(text).length
}

const encoder = new TextEncoder()
