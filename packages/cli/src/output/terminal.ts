/** The only place that writes to the terminal. Results go to stdout, everything else to stderr. */
import { stderr, stdout } from 'node:process'
import colors from 'picocolors'

/** A line of result. */
export function printLine(text = ''): void {
  stdout.write(`${text}\n`)
}

/** Raw bytes of result, such as a command's output. */
export function printBytes(bytes: Uint8Array): void {
  stdout.write(bytes)
}

/** Bytes of a command's stderr. */
export function printErrorBytes(bytes: Uint8Array): void {
  stderr.write(bytes)
}

/** One JSON value as result. */
export function printJson(value: unknown): void {
  stdout.write(`${JSON.stringify(value, null, 2)}\n`)
}

/** News for a person, beside the result. */
export function note(text: string): void {
  stderr.write(`${colors.dim('sandlot:')} ${text}\n`)
}

/** A failure with what to do next. */
export function printFailure(message: string, hint: string | undefined): void {
  stderr.write(`${colors.red('error:')} ${message}\n`)
  if (hint) stderr.write(`${colors.yellow('hint:')}  ${hint}\n`)
}

export const isInteractive = stderr.isTTY === true
