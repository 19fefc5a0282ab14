import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { MEND } from '../generate/document.ts'
import { DOCUMENTS } from '../generate/documents.ts'

const top = new URL('../../', import.meta.url)

test.for(DOCUMENTS.map((each) => [each.path, each] as const))(
  '%s is what the sources say',
  async ([path, { text }]) => {
    const current = await readFile(new URL(path, top), 'utf8')
    expect(current, `${path} is behind the sources: run ${MEND}`).toBe(await text(current))
  },
)
