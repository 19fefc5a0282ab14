import { parseDurationMs } from '@sandlot/protocol'
import { SandlotError } from 'sandlot'

/** `7d` is so long ago; anything else is a time, which the daemon reads. */
export function timeOf(option: string, text: string): Date | string {
  if (!/^\s*[\d.]+\s*[a-z]+\s*$/i.test(text)) return text
  try {
    return new Date(Date.now() - parseDurationMs(text))
  } catch (cause) {
    throw new SandlotError('invalid_request', `${option}: ${(cause as Error).message}`, {
      cause,
      hint: 'Give how long ago, as 7d, or a time, as 2026-11-30T12:00:00Z.',
    })
  }
}
