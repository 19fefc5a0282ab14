/**
 * The patterns of a `.dockerignore`: they are anchored at the root of the context, the last one that matches a path or a directory
 * above it decides, and `!` takes back.
 */
import picomatch from 'picomatch'

export type Ignore = (path: string) => boolean

export function ignoreOf(patterns: readonly string[]): Ignore {
  const rules = patterns.map(ruleOf).filter((rule) => rule !== undefined)
  return (path) => {
    const names = path.split('/')
    const above = names.map((_, index) => names.slice(0, index + 1).join('/'))
    return rules.reduce(
      (ignored, { ignores, matches }) => (above.some(matches) ? ignores : ignored),
      false,
    )
  }
}

/** Whether a pattern takes something back, so that nothing below an ignored directory can be skipped unseen. */
export function takesBack(patterns: readonly string[]): boolean {
  return patterns.some((pattern) => pattern.trim().startsWith('!'))
}

export function linesOfIgnore(text: string): string[] {
  return text.replace(/^\uFEFF/, '').split(/\r?\n/)
}

function ruleOf(
  line: string,
): { ignores: boolean; matches: (path: string) => boolean } | undefined {
  const text = line.trim()
  if (text === '' || text.startsWith('#')) return undefined
  const ignores = !text.startsWith('!')
  const pattern = cleaned(ignores ? text : text.slice(1).trim())
  if (pattern === '') return undefined
  return { ignores, matches: matcherOf(pattern) }
}

/** A glob as Dockerfiles have it: `*` and `?` within a name, `**` over names, `[…]`; nothing else is special. */
export function matcherOf(pattern: string): (path: string) => boolean {
  const matches = picomatch(pattern, {
    dot: true,
    nobrace: true,
    noextglob: true,
    nonegate: true,
    strictSlashes: true,
  })
  return (path) => matches(path)
}

function cleaned(pattern: string): string {
  const names = pattern.split('/').filter((name) => name !== '' && name !== '.')
  const kept: string[] = []
  for (const name of names) {
    if (name === '..') kept.pop()
    else kept.push(name)
  }
  return kept.join('/')
}
