/** What an option or an argument may be. */
import { InvalidArgumentError } from 'commander'

export function wholeNumber(text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1)
    throw new InvalidArgumentError('not a whole number of at least 1')
  return value
}

export function naturalNumber(text: string): number {
  if (/^\d+$/.test(text) && Number.isSafeInteger(Number(text))) return Number(text)
  throw new InvalidArgumentError('not a whole number from 0')
}

export function portNumber(text: string): number {
  if (/^\d+$/.test(text) && Number(text) <= 65_535) return Number(text)
  throw new InvalidArgumentError('not a port (0 to 65535)')
}

export function positiveNumber(text: string): number {
  const value = Number(text)
  if (!Number.isFinite(value) || value <= 0) throw new InvalidArgumentError('not a number above 0')
  return value
}

export function numberFromZero(text: string): number {
  const value = Number(text)
  if (text.trim() === '' || !Number.isFinite(value) || value < 0) {
    throw new InvalidArgumentError('not a number from 0')
  }
  return value
}

/** `64,128,256`. */
export function wholeNumbers(text: string): number[] {
  return text.split(',').map((part) => wholeNumber(part.trim()))
}

export function collect(text: string, earlier: string[] = []): string[] {
  return [...earlier, text]
}

/** What of sandboxes is kept. */
export function keptOf(text: string): 'on-failure' | 'always' | number {
  if (text === 'on-failure' || text === 'always') return text
  const value = Number(text)
  if (Number.isInteger(value) && value > 0) return value
  throw new InvalidArgumentError('not on-failure, always or a whole number of at least 1')
}

export function oneOf(...words: readonly string[]) {
  return (text: string): string => {
    if (!words.includes(text)) throw new InvalidArgumentError(`not one of ${words.join(', ')}`)
    return text
  }
}
