/**
 * Words of an instruction as Docker reads them: quotes, escapes and variables in one pass. A variable that only the base image
 * can know stays open; an instruction that may leave it to the daemon renders it as `${NAME}`.
 */

/** Text that is known, and variables that are not. */
export type Part = string | { readonly open: string }
export type Word = readonly Part[]

/** The value of a variable; undefined where only the base image can have it. */
export type Lookup = (name: string) => Word | undefined

/** The words of a text, split at white space outside of quotes. */
export function wordsOf(text: string, lookup: Lookup): readonly Word[] {
  const reader = new Reader(text, lookup)
  const words: Word[] = []
  for (;;) {
    const word = reader.word()
    if (word === undefined) return words
    words.push(word)
  }
}

/** One word of a whole text: white space is kept. */
export function wordOf(text: string, lookup: Lookup): Word {
  return new Reader(text, lookup).all()
}

/** A here-document's text: variables are replaced, quotes mean nothing. */
export function expandedText(text: string, lookup: Lookup): Word {
  return new Reader(text, lookup).variables()
}

/** The text of a word without open variables, else undefined and the first of them. */
export function plain(word: Word): { text: string } | { open: string } {
  const open = word.find((part) => typeof part !== 'string')
  return open ? (open as { open: string }) : { text: word.join('') }
}

/** A word as the daemon expands it (`expand` of the protocol's steps). */
export function rendered(word: Word): { value: string; expand: boolean } {
  const expand = word.some((part) => typeof part !== 'string')
  if (!expand) return { value: word.join(''), expand }
  const value = word.map((part) =>
    typeof part === 'string' ? part.replaceAll('$', '$$$$') : `\${${part.open}}`,
  )
  return { value: value.join(''), expand }
}

class Reader {
  readonly #text: string
  readonly #lookup: Lookup
  #at = 0

  constructor(text: string, lookup: Lookup) {
    this.#text = text
    this.#lookup = lookup
  }

  word(): Word | undefined {
    while (/\s/.test(this.#peek())) this.#at += 1
    if (this.#peek() === '') return undefined
    return this.#read((next) => /\s/.test(next))
  }

  all(): Word {
    return this.#read(() => false)
  }

  variables(): Word {
    const parts: Part[] = []
    while (this.#peek() !== '') {
      if (this.#peek() === '$') parts.push(...this.#variable())
      else {
        if (this.#peek() === '\\' && this.#text[this.#at + 1] === '$') this.#at += 1
        parts.push(this.#take())
      }
    }
    return parts
  }

  #read(ends: (next: string) => boolean): Word {
    const parts: Part[] = []
    while (this.#peek() !== '' && !ends(this.#peek())) {
      const next = this.#peek()
      if (next === "'") parts.push(this.#single())
      else if (next === '"') parts.push(...this.#double())
      else if (next === '\\') {
        this.#at += 1
        parts.push(this.#take())
      } else if (next === '$') parts.push(...this.#variable())
      else parts.push(this.#take())
    }
    return parts
  }

  #single(): string {
    const end = this.#text.indexOf("'", this.#at + 1)
    const stop = end < 0 ? this.#text.length : end
    const text = this.#text.slice(this.#at + 1, stop)
    this.#at = stop + 1
    return text
  }

  #double(): Word {
    const parts: Part[] = ['']
    this.#at += 1
    while (this.#peek() !== '' && this.#peek() !== '"') {
      if (this.#peek() === '$') parts.push(...this.#variable())
      else if (this.#peek() === '\\' && /["$\\]/.test(this.#text[this.#at + 1] ?? '')) {
        this.#at += 1
        parts.push(this.#take())
      } else parts.push(this.#take())
    }
    this.#at += 1
    return parts
  }

  /** `$NAME`, `${NAME}`, `${NAME:-word}` and `${NAME:+word}`; any other dollar sign is itself. */
  #variable(): Word {
    const found =
      /^\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)(?:(:?[-+])((?:[^{}]|\{[^{}]*\})*))?\})/.exec(
        this.#text.slice(this.#at),
      )
    if (!found) return [this.#take()]
    this.#at += found[0].length
    const [, bare, braced, operator, word = ''] = found
    const name = bare ?? braced ?? ''
    const value = this.#lookup(name)
    if (operator === undefined) return value ?? [{ open: name }]
    // A value that only the base has is taken for none here: the word says what then.
    const has = value !== undefined && (operator.startsWith(':') ? value.join('') !== '' : true)
    if (operator.endsWith('+')) return has ? wordOf(word, this.#lookup) : []
    return has ? value : wordOf(word, this.#lookup)
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
