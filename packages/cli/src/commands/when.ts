import { parseDurationMs } from '@sandlot/protocol'
import { SandlotError } from 'sandlot'

/** `7d` is so long ago; what begins as a date is a time, which the daemon reads. */
export function timeOf(option: string, text: string): Date | string {
  if (/^\d{4}-\d\d/.test(text)) return text
  try {
    return new Date(Date.now() - parseDurationMs(text))
  } catch (cause) {
    throw new SandlotError('invalid_request', `${option}: ${(cause as Error).message}`, {
      cause,
      hint: 'Give how long ago, as 7d, or a time, as 2026-11-30T12:00:00Z.',
    })
  }
}
