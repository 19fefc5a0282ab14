import { Mistake } from '../failure.ts'

const SCRIPTED = ['oracle', 'nop'] as const

export type WhoDoes = (typeof SCRIPTED)[number] | { readonly command: string }

/** Who does the tasks of folders, as `--agent` says it. @throws Mistake for what is only nearly a name */
export function whoDoes(agent: string): WhoDoes {
  const scripted = SCRIPTED.find((name) => name === agent)
  if (scripted !== undefined) return scripted
  const meant = SCRIPTED.find((name) => isNearly(agent.toLowerCase(), name))
  if (meant === undefined) return { command: agent }
  const hint = `Did you mean --agent ${meant}? A command of that name is --agent './${agent}', or with its whole path.`
  throw new Mistake(`${JSON.stringify(agent)} is nearly ${meant}`, hint)
}

/** Its letters in another order, one of them too many, missing or another. */
function isNearly(word: string, name: string): boolean {
  return !/[^a-z]/.test(word) && beyond(word, name) <= 1 && beyond(name, word) <= 1
}

/** Letters of one that the other lacks. */
function beyond(one: string, other: string): number {
  let left = other
  let count = 0
  for (const letter of one) {
    if (left.includes(letter)) left = left.replace(letter, '')
    else count += 1
  }
  return count
}
