import { stderr } from 'node:process'
import type { FunctionLog } from './options.ts'

/** Where nobody takes what a function prints, its author finds it where the calling script's own messages go. */
export function printLine({ label, text }: FunctionLog): void {
  stderr.write(`[${label}] ${text}\n`)
}
