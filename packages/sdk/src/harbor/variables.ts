/** Variables of a task, of which some are taken from whoever runs it. */
import { SETTINGS_FILE } from './format.ts'
import type { Problems } from './problems.ts'

/** A whole value: `${NAME}` or `${NAME:-what else}`. */
const TEMPLATE = /^\$\{([^}:]+)(?::-(.*))?\}$/s

/**
 * Values as they are, but for those that name a variable of the caller's: that one, or what stands there for it.
 * Nothing of this process's own environment gets into a task by itself.
 */
export function resolveVariables(
  env: Readonly<Record<string, string>>,
  {
    at,
    given,
    problems,
  }: {
    readonly at: string
    readonly given: Readonly<Record<string, string>>
    readonly problems: Problems
  },
): Record<string, string> {
  const resolved: Record<string, string> = {}
  for (const [name, value] of Object.entries(env)) {
    const [template, wanted = '', otherwise] = TEMPLATE.exec(value) ?? []
    const found = template === undefined ? value : (given[wanted] ?? otherwise)
    if (found === undefined) {
      problems.add(
        SETTINGS_FILE,
        `wants a value for ${wanted}: give it (\`env\`, --task-env ${wanted}=…)`,
        `${at}.${name}`,
      )
    } else resolved[name] = found
  }
  return resolved
}
