/** From what Commander gives to what the SDK takes. */
import { parseDurationMs, SandlotError } from '@sandlot/protocol'
import { Mistake } from '../failure.ts'

/** `NAME=VALUE` each, or of another form, as one object. */
export function pairs(
  texts: readonly string[],
  option: string,
  form = 'NAME=VALUE',
): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const position = text.indexOf('=')
      if (position <= 0)
        throw new Mistake(`${option} ${text} is not ${form}`, `write it as ${option} ${form}`)
      return [text.slice(0, position), text.slice(position + 1)]
    }),
  )
}

/** Only what was given: an absent option is not the same as one that is undefined. */
export function given<T extends object>(options: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined),
  ) as never
}

/** Before anything begins. @throws SandlotError `invalid_request` for what is no duration */
export function checkDuration(text: string | undefined, option: string): void {
  if (text === undefined) return
  try {
    parseDurationMs(text)
  } catch (cause) {
    const message = `${option}: ${(cause as Error).message}`
    const hint = `Write it as ${option} 30s.`
    throw new SandlotError('invalid_request', message, { hint, cause })
  }
}
