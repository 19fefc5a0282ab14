/** JSON Schema as the types that a reader of TypeScript knows. */
import { ERROR_CODES, OUTCOMES } from '@sandlot/protocol'
import { code } from './markdown.ts'
import { COMPONENT, type JsonSchema } from './schema.ts'

/** Closed sets with a page of their own. */
const SETS = [
  { name: 'Outcome', words: OUTCOMES, page: 'guides/rollouts.md#outcomes' },
  { name: 'ErrorCode', words: ERROR_CODES, page: 'errors.md' },
] as const

/** `string`, `'a' | 'b'`, `{ name: string; size?: number }[]`, `SandboxView`. */
export function typeText(schema: JsonSchema): string {
  if (schema.$ref) return schema.$ref.replace(COMPONENT, '')
  if (schema.const !== undefined) return literal(schema.const)
  if (schema.enum) return setName(schema.enum) ?? schema.enum.map(literal).join(' | ')
  const alternatives = schema.anyOf ?? schema.oneOf
  if (alternatives) return unique(alternatives.map(typeText)).join(' | ')
  if (schema.not) return 'never'
  if (Array.isArray(schema.type)) return schema.type.map(String).join(' | ')
  if (schema.type === 'array') return arrayText(typeText(schema.items ?? {}))
  if (schema.type === 'object') return objectText(schema)
  return schema.type === undefined ? 'any' : String(schema.type)
}

/** The bounds of a value, in words: `1 to 1000`, `at most 200 characters`. */
export function boundsText(schema: JsonSchema): string {
  const { minimum, maximum, minLength, maxLength, maxItems } = schema
  const notes: string[] = []
  const top = maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum
  if (minimum !== undefined && top !== undefined) notes.push(`${minimum} to ${top}`)
  else if (minimum !== undefined && minimum > 0) notes.push(`at least ${minimum}`)
  else if (top !== undefined) notes.push(`at most ${top}`)
  if (maxLength !== undefined) notes.push(`at most ${maxLength} characters`)
  if (minLength !== undefined && minLength > 0) notes.push('not empty')
  if (maxItems !== undefined) notes.push(`at most ${maxItems} items`)
  return notes.join(', ')
}

/** A type as code, in which a name links to what it stands for. */
export function linkedType(schema: JsonSchema): string {
  const text = typeText(schema)
  const name = /^([A-Z][A-Za-z]+)(\[\])?$/.exec(text)?.[1]
  if (name === undefined) return code(text)
  const page = SETS.find((set) => set.name === name)?.page ?? `#${name.toLowerCase()}`
  return `[${code(text)}](${page})`
}

function setName(words: readonly unknown[]): string | undefined {
  return SETS.find((set) => set.words.join() === words.join())?.name
}

function objectText({ properties, required = [], additionalProperties }: JsonSchema): string {
  if (properties === undefined) {
    const values = typeof additionalProperties === 'object' ? additionalProperties : {}
    return `{ [name]: ${typeText(values)} }`
  }
  const fields = Object.entries(properties).map(
    ([name, schema]) => `${name}${required.includes(name) ? '' : '?'}: ${typeText(schema)}`,
  )
  return fields.length === 0 ? '{}' : `{ ${fields.join('; ')} }`
}

function arrayText(item: string): string {
  return /[|{]/.test(item) && !item.startsWith('{') ? `(${item})[]` : `${item}[]`
}

function literal(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : JSON.stringify(value)
}

function unique(texts: readonly string[]): string[] {
  return [...new Set(texts.flatMap((text) => (text.includes('{') ? [text] : text.split(' | '))))]
}
