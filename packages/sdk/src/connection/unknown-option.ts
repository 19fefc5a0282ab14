import { SandlotError } from '@sandlot/protocol'

/** An option that nothing knows: misspelled, it would be as if it weren't there. */
export function unknownOption<T extends object>(
  options: T,
  known: readonly (keyof T & string)[],
): SandlotError | undefined {
  const unknown = Object.keys(options).find((name) => !known.some((each) => each === name))
  if (unknown === undefined) return undefined
  const shown = JSON.stringify(unknown.slice(0, 64).toWellFormed())
  return new SandlotError('invalid_request', `there is no option ${shown}`, {
    hint: `There are ${known.join(', ')}.`,
  })
}

/** @throws SandlotError `invalid_request` */
export function refuseUnknown<T extends object>(
  options: T,
  known: readonly (keyof T & string)[],
): void {
  const error = unknownOption(options, known)
  if (error) throw error
}
