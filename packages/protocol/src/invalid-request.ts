/** What a schema refuses, as an error that a person can read. */
import type { ZodError } from 'zod'
import { SandlotError } from './sandlot-error.ts'

type Issue = ZodError['issues'][number]

const ISSUES_SHOWN = 5
const MESSAGE_LENGTH = 2_000

/** What zod found, field by field: `body.resources.memory: "lots" is not a size …`, where `where` is `body`. */
export function invalidRequest(where: string, { issues }: Pick<ZodError, 'issues'>): SandlotError {
  const leaves = issues.flatMap(leavesOf)
  const lines = leaves.slice(0, ISSUES_SHOWN).map((leaf) => lineOf(where, leaf))
  const more = leaves.length - lines.length
  const text = lines.join('; ') + (more > 0 ? `; and ${more} more` : '')
  const hint = leaves[0]?.hint
  return new SandlotError('invalid_request', text.slice(0, MESSAGE_LENGTH), hint ? { hint } : {})
}

function lineOf(where: string, { path, message }: Leaf): string {
  const names = where === '' ? path : [where, ...path]
  const at = names.map(String).map(shown).join('.')
  return at === '' ? message : `${at}: ${message}`
}

/** A name of the caller's may hold anything. */
function shown(part: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that's what is looked for
  return /[\x00-\x1f\x7f]/.test(part) || !part.isWellFormed() ? JSON.stringify(part) : part
}

type Leaf = Pick<Issue, 'path' | 'message'> & {
  readonly expected?: string
  /** What to do, where what is wrong says so. */
  readonly hint?: string
}

/**
 * Of a union the alternative that was meant: the one whose type fits, and of which something else is wrong. Where none fits, all types
 * that are taken.
 */
function leavesOf(issue: Issue): readonly Leaf[] {
  if (issue.code === 'invalid_key') {
    const leaves = (issue.issues as Issue[]).flatMap(leavesOf)
    return leaves.map((leaf) => ({ ...leaf, path: issue.path }))
  }
  if (issue.code !== 'invalid_union') return [leafOf(issue)]
  const alternatives = issue.errors.map((issues) => (issues as Issue[]).flatMap(leavesOf))
  const meant = alternatives.find((leaves) => leaves.some(({ expected }) => expected === undefined))
  const below = (leaves: readonly Leaf[]) =>
    leaves.map((leaf) => ({ ...leaf, path: [...issue.path, ...leaf.path] }))
  if (meant) return below(meant.filter(({ expected }) => expected === undefined))
  const all = alternatives.flat()
  if (all.length === 0) return [issue]
  const expected = [...new Set(all.map((leaf) => leaf.expected))].join(' or ')
  return [{ path: issue.path, message: `expected ${expected}`, expected }]
}

/** Only what is wrong with the type of the value itself, or with a value that stands for a type, has `expected`. */
function leafOf(issue: Issue): Leaf {
  if (issue.path.length === 0) {
    if (issue.code === 'invalid_type') return { ...issue, expected: String(issue.expected) }
    if (issue.code === 'invalid_value') {
      const expected = issue.values.map((value) => JSON.stringify(value)).join(' or ')
      return { ...issue, expected }
    }
  }
  return { path: issue.path, message: issue.message, ...hintOf(issue) }
}

function hintOf(issue: Issue): { readonly hint?: string } {
  const hint = issue.code === 'custom' ? issue.params?.hint : undefined
  return typeof hint === 'string' ? { hint } : {}
}
