import { readFile } from 'node:fs/promises'
import { fillBlock } from './blocks.ts'
import type { Document } from './document.ts'
import { fenced } from './markdown.ts'

/** The examples in the pages are those that the tests run. */
export const quickstart = example('README.md', 'quickstart')
export const programs = example('docs/guides/rollouts.md', 'programs')
export const trainer = example('docs/guides/rollouts.md', 'trainer')

function example(path: string, name: string): Document {
  const file = new URL(`../../examples/${name}.ts`, import.meta.url)
  return {
    path,
    text: async (current) => fillBlock(current, name, fenced('ts', await readFile(file, 'utf8'))),
  }
}
