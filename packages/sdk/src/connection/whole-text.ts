import { SandlotError } from '@sandlot/protocol'

/**
 * Refuses half a character (a lone surrogate) anywhere in what is asked for: written as UTF-8 it would become another one without a
 * word, and a file or a command be another than the one that was meant. `at` names the place.
 * @throws SandlotError `invalid_request`
 */
export function checkWholeText(asked: unknown, at = ''): void {
  if (typeof asked === 'string') {
    if (!asked.isWellFormed()) throw halfCharacter(at)
    return
  }
  if (typeof asked !== 'object' || asked === null || ArrayBuffer.isView(asked)) return
  for (const [name, value] of Object.entries(asked)) {
    const below = at === '' ? name : `${at}.${name}`
    if (!name.isWellFormed()) throw halfCharacter(JSON.stringify(below))
    checkWholeText(value, below)
  }
}

function halfCharacter(at: string): SandlotError {
  return new SandlotError('invalid_request', `${at}: holds half a character (a lone surrogate)`)
}
