import { codeBlocks, pages, textOf } from '@sandlot/testkit/repository'
import { expect, test } from 'vitest'
import { makeProgram } from '../generate/inside.ts'

type Command = ReturnType<typeof makeProgram>

test('every command of every page is one that the command line knows', async () => {
  const all = (await Promise.all((await pages()).map(codeBlocks))).flat()
  const lines = all
    .filter(({ language }) => language === 'sh')
    .flatMap(({ page, text }) => text.split('\n').map((line) => ({ page, line })))
    .filter(({ line }) => /^(\.\/)?sandlot /.test(line))
  expect(lines.length).toBeGreaterThan(4)
  const wrong = lines.flatMap(({ page, line }) => {
    const problem = problemOf(line.split(/\s+/).slice(1))
    return problem === undefined ? [] : [`${page}: ${line}: ${problem}`]
  })
  expect(wrong).toEqual([])
})

test('every verb in code is one that the command line knows', async () => {
  const wrong: string[] = []
  for (const page of await pages()) {
    for (const [, words] of (await textOf(page)).matchAll(/`(?:\.\/)?sandlot ([a-z][^`]*)`/g)) {
      const problem = problemOf((words ?? '').split(/\s+/))
      if (problem !== undefined) wrong.push(`${page}: sandlot ${words}: ${problem}`)
    }
  }
  expect(wrong).toEqual([])
})

/** What is wrong with these words, if anything: a verb or an option that isn't there. */
function problemOf(words: readonly string[]): string | undefined {
  let command: Command = makeProgram()
  for (const word of words) {
    const below = command.commands.find((each) => each.name() === word)
    if (below) command = below
    else if (word.startsWith('--')) {
      if (!command.options.some(({ long }) => long === word)) return `there is no ${word}`
    } else if (command.commands.length > 0 && word !== 'help') return `there is no verb ${word}`
  }
  return undefined
}
