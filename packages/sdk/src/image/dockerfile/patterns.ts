/** Patterns of `${NAME#pattern}` and its kin: `*` is any text, `?` one character, `\` takes the meaning of the next one away. */

type Token = 'any' | 'one' | { readonly text: string }

/** The value without the part at its beginning that matches; the shortest such part, or the longest. */
export function withoutPrefix(value: string, pattern: string, longest: boolean): string {
  const tokens = tokensOf(pattern)
  const end = ends(value.length, longest).find((at) => matches(tokens, value.slice(0, at)))
  return end === undefined ? value : value.slice(end)
}

/** The same at its end. */
export function withoutSuffix(value: string, pattern: string, longest: boolean): string {
  const tokens = tokensOf(pattern)
  const start = ends(value.length, !longest).find((at) => matches(tokens, value.slice(at)))
  return start === undefined ? value : value.slice(0, start)
}

/** The value with the first match, or each, replaced; of several at one place the longest. */
export function replaced(value: string, pattern: string, by: string, all: boolean): string {
  const tokens = tokensOf(pattern)
  let result = ''
  let at = 0
  while (at < value.length) {
    const lengths = ends(value.length - at, true).filter((length) => length > 0)
    const start = at
    const length = lengths.find((each) => matches(tokens, value.slice(start, start + each)))
    if (length === undefined) {
      result += value[at]
      at += 1
      continue
    }
    result += by
    at += length
    if (!all) break
  }
  return result + value.slice(at)
}

function ends(length: number, falling: boolean): number[] {
  const all = Array.from({ length: length + 1 }, (_, at) => at)
  return falling ? all.reverse() : all
}

function tokensOf(pattern: string): readonly Token[] {
  const tokens: Token[] = []
  for (let at = 0; at < pattern.length; at += 1) {
    const next = pattern[at] ?? ''
    if (next === '*') tokens.push('any')
    else if (next === '?') tokens.push('one')
    else if (next === '\\' && at + 1 < pattern.length) {
      at += 1
      tokens.push({ text: pattern[at] ?? '' })
    } else tokens.push({ text: next })
  }
  return tokens
}

/** The last star takes more when what is behind it doesn't fit: no pattern takes more than its length times that of the text. */
function matches(tokens: readonly Token[], text: string): boolean {
  let [token, at, star, starAt] = [0, 0, -1, 0]
  while (at < text.length) {
    const here = tokens[token]
    if (here === 'any') {
      star = token
      starAt = at
      token += 1
    } else if (here === 'one' || (here !== undefined && here.text === text[at])) {
      token += 1
      at += 1
    } else if (star >= 0) {
      token = star + 1
      starAt += 1
      at = starAt
    } else return false
  }
  return tokens.slice(token).every((each) => each === 'any')
}
