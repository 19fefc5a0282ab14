import { idKind } from './ids.ts'
import { LIMITS } from './limits.ts'
import { wholeText } from './whole-text.ts'

const NAMED = ['snapshot', 'template'] as const

/**
 * Where a start or a build begins: the id of an image, a snapshot or a template; `snapshot:NAME` or `template:NAME`; or the name
 * alone, where only one of both has it.
 */
export const startPoint = wholeText.min(1).max(LIMITS.nameLength + 'snapshot:'.length)

const UNNAMEABLE = /^\s|\s$|\p{Cc}|^\.\.?$/u

/** What a snapshot or a template is called: something that `from` and a path of the API can say. */
export const startableName = wholeText
  .min(1)
  .max(LIMITS.nameLength)
  .refine(
    (text) => !UNNAMEABLE.test(text),
    'a name has no control characters, no blanks at its ends, and is not “.” or “..”',
  )
  .refine((text) => !isStartId(text), 'begins as an id does: choose another name')
  .refine(
    (text) => parseStartName(text) === undefined,
    '“snapshot:” and “template:” before a name say what it is the name of: leave them out',
  )

export interface StartName {
  readonly kind: (typeof NAMED)[number]
  readonly name: string
}

/** What `snapshot:NAME` or `template:NAME` says; undefined for anything else. */
export function parseStartName(text: string): StartName | undefined {
  const kind = NAMED.find((each) => text.startsWith(`${each}:`) && text !== `${each}:`)
  return kind && { kind, name: text.slice(kind.length + 1) }
}

const STARTED: readonly unknown[] = ['image', ...NAMED]

/** Whether it is an id that a start can begin at. */
export function isStartId(text: string): boolean {
  return STARTED.includes(idKind(text))
}
