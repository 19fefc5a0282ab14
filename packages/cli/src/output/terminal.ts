/** The only place that writes to the terminal. Results go to stdout, everything else to stderr. */
import { once } from 'node:events'
import { stderr, stdout } from 'node:process'
import picocolors from 'picocolors'
import { harmless } from './control-characters.ts'

export const isInteractive = stderr.isTTY === true

/** For a person's eyes alone: what reads a pipe gets plain text, also where a CI asks for colours everywhere. */
const colors = picocolors.createColors(isInteractive && picocolors.isColorSupported)

/** A line of result. */
export function printLine(text = ''): void {
  stdout.write(`${harmless(text)}\n`)
}

/** Raw bytes of result, such as a command's output. Waits for a reader that is slow. */
export async function printBytes(bytes: Uint8Array): Promise<void> {
  if (!stdout.write(bytes)) await once(stdout, 'drain')
}

/** Bytes of a command's stderr. */
export async function printErrorBytes(bytes: Uint8Array): Promise<void> {
  if (!stderr.write(bytes)) await once(stderr, 'drain')
}

/** One JSON value as result. */
export function printJson(value: unknown): void {
  stdout.write(`${JSON.stringify(value, null, 2)}\n`)
}

/** News for a person, beside the result. */
export function note(text: string): void {
  stderr.write(`${colors.dim('sandlot:')} ${harmless(text)}\n`)
}

/** A failure with what to do next. */
export function printFailure(message: string, hint: string | undefined): void {
  stderr.write(`${colors.red('error:')} ${harmless(message)}\n`)
  if (hint) stderr.write(`${colors.yellow('hint:')}  ${harmless(hint)}\n`)
}
