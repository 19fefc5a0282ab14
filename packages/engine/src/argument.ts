import { EngineError } from './error.ts'
import { DEDUP_KEY_LENGTH_MAX, NAME_LENGTH_MAX } from './limits.ts'

const NAME = /^[A-Za-z0-9][A-Za-z0-9._/=:@-]*$/
const PREFIX = /^([A-Za-z0-9][A-Za-z0-9._/=:@-]*)?$/

/** A name of a stream, queue, key or pin. */
export function checkName(argument: string, name: string): void {
  if (typeof name === 'string' && name.length <= NAME_LENGTH_MAX && NAME.test(name)) return
  throw invalid(
    argument,
    `must be 1 to ${NAME_LENGTH_MAX} of A-Z a-z 0-9 . _ / = : @ - and begin with a letter or digit, not ${quote(name)}`,
  )
}

export function checkPrefix(prefix: string): void {
  if (typeof prefix === 'string' && prefix.length <= NAME_LENGTH_MAX && PREFIX.test(prefix)) return
  throw invalid('prefix', `must be empty or begin like a name, not ${quote(prefix)}`)
}

export function checkDedupKey(key: string): void {
  const wellFormed = typeof key === 'string' && key.isWellFormed()
  if (wellFormed && key.length > 0 && key.length <= DEDUP_KEY_LENGTH_MAX) return
  throw invalid('dedup', `must be 1 to ${DEDUP_KEY_LENGTH_MAX} characters of well-formed text`)
}

export function checkInteger(argument: string, value: number, min: number, max: number): void {
  if (Number.isInteger(value) && value >= min && value <= max) return
  throw invalid(argument, `must be a whole number from ${min} to ${max}, not ${String(value)}`)
}

/** `what` names the payload in the message. */
export function checkBytes(what: string, bytes: Uint8Array, limitBytes: number): void {
  if (!(bytes instanceof Uint8Array)) throw invalid(what, 'must be a Uint8Array')
  checkSize(what, bytes.byteLength, limitBytes)
}

export function checkSize(what: string, sizeBytes: number, limitBytes: number): void {
  if (sizeBytes <= limitBytes) return
  throw new EngineError(
    'too_large',
    `${what} is ${sizeBytes} bytes, the limit is ${limitBytes} bytes`,
    { details: { sizeBytes, limitBytes } },
  )
}

export function invalid(argument: string, what: string): EngineError {
  return new EngineError('invalid_argument', `${argument} ${what}`, { details: { argument } })
}

function quote(value: unknown): string {
  return (JSON.stringify(value) ?? String(value)).slice(0, 80)
}
