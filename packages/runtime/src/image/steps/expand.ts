/** Variables in a step, as the image has them: `expand` of the protocol's steps. */
import { sourceInvalid } from '../image-error.ts'

type Environment = Readonly<Record<string, string>>

const NESTED_MAX = 64

/** @throws ImageError `image_source_invalid` for a variable that is needed and has no value, or an open brace */
export function expanded(text: string, env: Environment): string {
  const reader = { text, at: 0, depth: 0 }
  return readUntil('', reader, env)
}

interface Reader {
  readonly text: string
  at: number
  depth: number
}

function readUntil(stop: string, reader: Reader, env: Environment): string {
  let result = ''
  for (;;) {
    const next = reader.text[reader.at] ?? ''
    if (next === stop) return result
    if (next === '') throw malformed(reader.text)
    if (next !== '$') {
      result += next
      reader.at += 1
      continue
    }
    const after = reader.text[reader.at + 1] ?? ''
    if (after === '{') result += variable(reader, env)
    else {
      const escaped = after === '$' || after === '}'
      result += escaped ? after : '$'
      reader.at += escaped ? 2 : 1
    }
  }
}

function variable(reader: Reader, env: Environment): string {
  const [whole, name = '', operator = ''] =
    /^\$\{([^}:?+-]*)(:?[-+?])?/.exec(reader.text.slice(reader.at)) ?? []
  reader.at += whole?.length ?? 0
  reader.depth += 1
  if (reader.depth > NESTED_MAX) throw malformed(reader.text)
  const word = readUntil('}', reader, env)
  reader.depth -= 1
  reader.at += 1
  const value = Object.hasOwn(env, name) ? env[name] : undefined
  const isSet = value !== undefined && !(operator.startsWith(':') && value === '')
  if (operator.endsWith('+')) return isSet ? word : ''
  if (isSet) return value
  if (operator.endsWith('-')) return word
  if (!operator.endsWith('?')) return ''
  throw sourceInvalid(
    `The image has no value of ${JSON.stringify(name)}${word === '' ? '' : `: ${word}`}.`,
    'Set it by ENV before this step.',
  )
}

function malformed(text: string): Error {
  const shown = JSON.stringify(text.slice(0, 200))
  return sourceInvalid(
    `${shown} has a substitution that nothing ends, or too many inside of one another.`,
    'Write $' + '{NAME}, and $$ for a dollar sign.',
  )
}
