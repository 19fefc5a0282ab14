import { readFile } from 'node:fs/promises'
import { fillBlock } from './blocks.ts'
import type { Document } from './document.ts'
import { fenced } from './markdown.ts'

const example = new URL('../../examples/quickstart.ts', import.meta.url)

/** The example in the README is the one that the tests run. */
export const quickstart: Document = {
  path: 'README.md',
  text: async (current) =>
    fillBlock(current, 'quickstart', fenced('ts', await readFile(example, 'utf8'))),
}
