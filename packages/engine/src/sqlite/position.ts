import { invalid } from '../argument.ts'

/** Digits of a position or revision as text: string order is then number order. */
const DIGITS = 16
const TEXT = /^\d{16}$/

export function formatPosition(position: number): string {
  return String(position).padStart(DIGITS, '0')
}

/** `argument` names the value in the error. */
export function parsePosition(argument: string, text: string): number {
  if (typeof text === 'string' && TEXT.test(text)) return Number(text)
  throw invalid(argument, 'is not a position or revision that this engine gave')
}
