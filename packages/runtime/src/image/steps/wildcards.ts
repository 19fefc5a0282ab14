/** `*`, `?`, `[a-z]` and `\x` in one name of a path, as Dockerfiles have them. */
type Token =
  | { readonly kind: 'any' }
  | { readonly kind: 'one'; readonly fits: (c: string) => boolean }

export function hasWildcards(name: string): boolean {
  return /[*?[\\]/.test(name)
}

/** In time of the product of both lengths, whatever the pattern. */
export function matchesName(pattern: string, name: string): boolean {
  const tokens = tokensOf(pattern)
  let at = 0
  let taken = 0
  let star = -1
  let starTaken = 0
  while (taken < name.length) {
    const token = tokens[at]
    if (token?.kind === 'any') {
      star = at
      starTaken = taken
      at += 1
    } else if (token?.kind === 'one' && token.fits(name[taken] ?? '')) {
      at += 1
      taken += 1
    } else if (star >= 0) {
      starTaken += 1
      taken = starTaken
      at = star + 1
    } else return false
  }
  return tokens.slice(at).every((token) => token.kind === 'any')
}

function tokensOf(pattern: string): Token[] {
  const tokens: Token[] = []
  for (let at = 0; at < pattern.length; at++) {
    const character = pattern[at] ?? ''
    const range = character === '[' ? rangeAt(pattern, at) : undefined
    if (character === '*') tokens.push({ kind: 'any' })
    else if (character === '?') tokens.push({ kind: 'one', fits: () => true })
    else if (range) {
      tokens.push({ kind: 'one', fits: range.fits })
      at = range.end
    } else {
      const isEscape = character === '\\' && at + 1 < pattern.length
      const literal = isEscape ? (pattern[++at] ?? '') : character
      tokens.push({ kind: 'one', fits: (found) => found === literal })
    }
  }
  return tokens
}

/** `[a-z]`, `[^a-z]`; undefined where no bracket closes it: then it is a bracket and nothing else. */
function rangeAt(
  pattern: string,
  start: number,
): { readonly fits: (c: string) => boolean; readonly end: number } | undefined {
  const isNegated = pattern[start + 1] === '^' || pattern[start + 1] === '!'
  const first = start + (isNegated ? 2 : 1)
  const end = pattern.indexOf(']', first + 1)
  if (end < 0) return undefined
  const ranges: [string, string][] = []
  for (let at = first; at < end; at++) {
    const low = pattern[at] ?? ''
    const isRange = pattern[at + 1] === '-' && at + 2 < end
    ranges.push([low, isRange ? (pattern[at + 2] ?? '') : low])
    if (isRange) at += 2
  }
  const fits = (c: string) => ranges.some(([low, high]) => c >= low && c <= high) !== isNegated
  return { fits, end }
}
