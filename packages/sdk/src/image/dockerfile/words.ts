/**
 * Words of an instruction as Docker reads them: quotes, escapes and variables in one pass. A variable that only the base image
 * can know stays open; an instruction that may leave it to the daemon renders it as the protocol's steps expand it.
 */
import { replaced, withoutPrefix, withoutSuffix } from './patterns.ts'

/** Text that is known, and variables that are not. */
export type Part = string | OpenPart
export interface OpenPart {
  readonly open: string
  /** What `word` is for: `:-`, `-`, `:+`, `+`, `:?` or `?`. */
  readonly operator?: string
  readonly word?: Word
}
export type Word = readonly Part[]

/** The value of a variable; null where it has none, undefined where only the base image can have it. */
export type Lookup = (name: string) => Word | null | undefined

/** What words are read with. */
export interface Reading {
  readonly lookup: Lookup
  /** What takes the meaning of the next character away. */
  readonly escapeSign: string
  /** The error of a text that is none. */
  readonly wrong: (problem: string) => Error
}

/** The words of a text, split at white space outside of quotes. */
export function wordsOf(text: string, reading: Reading): readonly Word[] {
  const reader = new Reader(text, reading, { quotes: true })
  const words: Word[] = []
  for (;;) {
    const word = reader.word()
    if (word === undefined) return words
    words.push(word)
  }
}

/** One word of a whole text: white space is kept. */
export function wordOf(text: string, reading: Reading): Word {
  return new Reader(text, reading, { quotes: true }).all()
}

/** A here-document's text: variables are replaced, quotes mean nothing. */
export function expandedText(text: string, reading: Reading): Word {
  return new Reader(text, reading, { quotes: false }).all()
}

/** The text of a word without open variables, else undefined and the first of them. */
export function plain(word: Word): { text: string } | { open: string } {
  const open = word.find((part) => typeof part !== 'string')
  return open ? (open as OpenPart) : { text: word.join('') }
}

/** Words as the daemon expands them (`expand` of the protocol's steps), or as they are where none is open. */
export function rendered(words: readonly Word[]): { values: string[]; expand: boolean } {
  const expand = words.some((word) => word.some((part) => typeof part !== 'string'))
  if (!expand) return { values: words.map((word) => word.join('')), expand }
  return { values: words.map((word) => word.map((part) => template(part)).join('')), expand }
}

function template(part: Part, inner = false): string {
  if (typeof part === 'string') return part.replace(inner ? /[$}]/g : /\$/g, '$$$&')
  const word = part.word?.map((each) => template(each, true)).join('') ?? ''
  return `\${${part.open}${part.operator ?? ''}${word}}`
}

const NESTED_MAX = 64
/** Of the shell itself; here they have no value. */
const SPECIAL = /(?:[0-9]+|[@*#?$!-])/y
const NAME = /[\p{L}_][\p{L}\p{N}_]*/uy
const OPERATOR = /(?:\}|:?[-+?]|##?|%%?|\/\/?)/y

interface Variable {
  readonly name: string
  readonly lookup: () => ReturnType<Lookup>
}

class Reader {
  readonly #text: string
  readonly #reading: Reading
  readonly #quotes: boolean
  #at = 0
  #depth = 0

  constructor(text: string, reading: Reading, { quotes }: { readonly quotes: boolean }) {
    this.#text = text
    this.#reading = reading
    this.#quotes = quotes
  }

  word(): Word | undefined {
    while (/\s/.test(this.#peek())) this.#at += 1
    if (this.#peek() === '') return undefined
    return this.#read((next) => /\s/.test(next))
  }

  all(): Word {
    return this.#read(() => false)
  }

  #read(ends: (next: string) => boolean): Word {
    const parts: Part[] = ['']
    while (this.#peek() !== '' && !ends(this.#peek())) {
      const next = this.#peek()
      if (next === '$') parts.push(...this.#variable())
      else if (next === this.#reading.escapeSign) parts.push(this.#escaped())
      else if (next === "'" && this.#quotes) parts.push(this.#single())
      else if (next === '"' && this.#quotes) parts.push(...this.#double())
      else parts.push(this.#take())
    }
    return parts
  }

  /** Without quotes it is for variables and their braces alone, and else itself. */
  #escaped(): string {
    const sign = this.#take()
    const meant = this.#quotes || this.#peek() === '$' || (this.#depth > 0 && this.#peek() === '}')
    return meant ? this.#take() : sign
  }

  #single(): string {
    const end = this.#text.indexOf("'", this.#at + 1)
    if (end < 0) throw this.#reading.wrong("has a ' that nothing ends")
    const text = this.#text.slice(this.#at + 1, end)
    this.#at = end + 1
    return text
  }

  #double(): Word {
    const { escapeSign, wrong } = this.#reading
    const parts: Part[] = ['']
    this.#at += 1
    while (this.#peek() !== '"') {
      if (this.#peek() === '') throw wrong('has a " that nothing ends')
      if (this.#peek() === '$') parts.push(...this.#variable())
      else if (
        this.#peek() === escapeSign &&
        ['"', '$', escapeSign].includes(this.#text[this.#at + 1] ?? '')
      )
        parts.push(this.#escaped())
      else parts.push(this.#take())
    }
    this.#at += 1
    return parts
  }

  /** `$NAME`, `${NAME}`, and what Docker has of the shell's substitutions; any other dollar sign is itself. */
  #variable(): Word {
    const start = this.#at
    this.#at += 1
    if (this.#peek() !== '{') {
      if (this.#match(SPECIAL)) return []
      const name = this.#match(NAME)
      return name ? this.#value(name) : ['$']
    }
    this.#at += 1
    const special = this.#match(SPECIAL)
    const name = special ?? this.#match(NAME)
    const operator = name === undefined ? undefined : this.#match(OPERATOR)
    if (this.#at >= this.#text.length && operator === undefined) throw this.#unended(start)
    if (name === undefined || operator === undefined) throw this.#noSubstitution(start)
    if (operator === '}') return special ? [] : this.#value(name)
    this.#depth += 1
    if (this.#depth > NESTED_MAX) {
      throw this.#reading.wrong(`has more than ${NESTED_MAX} substitutions inside of one another`)
    }
    const lookup = () => (special === undefined ? this.#reading.lookup(name) : null)
    const word = /[-+?]/.test(operator)
      ? this.#chosen({ name, lookup }, operator, this.#until('}', start))
      : this.#cut(lookup, operator, start)
    this.#depth -= 1
    return word
  }

  #value(name: string): Word {
    const value = this.#reading.lookup(name)
    return isKnown(value) ? (value ?? []) : [{ open: name }]
  }

  /** `-`, `+` and `?`, with a colon where an empty value is none. */
  #chosen({ name, lookup }: Variable, operator: string, word: Word): Word {
    const value = lookup()
    if (!isKnown(value)) return [{ open: name, operator, word }]
    const isSet = value !== null && !(operator.startsWith(':') && value.join('') === '')
    if (operator.endsWith('+')) return isSet ? word : []
    if (isSet) return value ?? []
    if (operator.endsWith('-')) return word
    const why = plain(word)
    const said = 'text' in why && why.text !== '' ? why.text : 'it has no value'
    throw this.#reading.wrong(`needs ${name}: ${said}`)
  }

  /** `#`, `%` and `/`: of a value that is known here. */
  #cut(lookup: Variable['lookup'], operator: string, start: number): Word {
    const [sign = ''] = operator
    const twice = operator.length > 1
    const pattern = this.#pattern(sign === '/' ? '/' : '}', start)
    const by = sign === '/' ? this.#until('}', start) : []
    const value = lookup()
    const text = plain(by)
    if (!isKnown(value) || !('text' in text)) {
      const shown = this.#text.slice(start, this.#at)
      throw this.#reading.wrong(`uses ${shown} of a variable that only the base image can have`)
    }
    const known = value?.join('') ?? ''
    if (sign === '#') return [withoutPrefix(known, pattern, twice)]
    if (sign === '%') return [withoutSuffix(known, pattern, twice)]
    return [replaced(known, pattern, text.text, twice)]
  }

  #until(stop: string, start: number): Word {
    const word = this.#read((next) => next === stop)
    if (this.#peek() !== stop) throw this.#unended(start)
    this.#at += 1
    return word
  }

  /** As it stands, escapes included, since they mean something in it; variables are replaced. */
  #pattern(stop: string, start: number): string {
    let pattern = ''
    while (this.#peek() !== stop) {
      const next = this.#peek()
      if (next === '') throw this.#unended(start)
      if (next === this.#reading.escapeSign) {
        this.#at += 1
        pattern += `\\${this.#take()}`
      } else if (next === '$') {
        const value = plain(this.#variable())
        if (!('text' in value)) throw this.#reading.wrong(`uses $${value.open} in a pattern`)
        pattern += value.text
      } else pattern += this.#take()
    }
    this.#at += 1
    return pattern
  }

  #noSubstitution(start: number): Error {
    const shown = this.#text.slice(start, start + 32)
    return this.#reading.wrong(`holds ${JSON.stringify(shown)}, which is no substitution`)
  }

  #unended(start: number): Error {
    return this.#reading.wrong(`has a ${this.#text.slice(start, start + 32)} that nothing ends`)
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0]
    this.#at += found?.length ?? 0
    return found
  }

  #peek(): string {
    return this.#text[this.#at] ?? ''
  }

  #take(): string {
    const next = this.#peek()
    this.#at += 1
    return next
  }
}

function isKnown(value: Word | null | undefined): value is Word | null {
  return value !== undefined && (value === null || value.every((part) => typeof part === 'string'))
}
