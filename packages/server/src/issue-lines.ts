import type { ZodError } from 'zod'

type Issue = ZodError['issues'][number]

/** What zod found, a line each: `body.resources.memory: "lots" is not a size …`. */
export function issueLines(where: string, { issues }: ZodError): string[] {
  return issues.flatMap(leavesOf).map(({ path, message }) => {
    return `${[where, ...path.map(String)].join('.')}: ${message}`
  })
}

type Leaf = Pick<Issue, 'path' | 'message'> & { readonly expected?: string }

/**
 * Of a union the alternative that was meant: the one whose type fits, and of which something else is wrong. Where none fits, all types
 * that are taken.
 */
function leavesOf(issue: Issue): readonly Leaf[] {
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

/** Only what is wrong with the type of the value itself has `expected`. */
function leafOf(issue: Issue): Leaf {
  return issue.code === 'invalid_type' && issue.path.length === 0
    ? { ...issue, expected: String(issue.expected) }
    : { path: issue.path, message: issue.message }
}
