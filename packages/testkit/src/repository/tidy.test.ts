import { expect, test } from 'vitest'
import { allFiles, textOf } from './files.ts'
import { unusedSources } from './imports.ts'
import { RULES } from './rules.ts'

const files = await allFiles()

test.for(RULES.map((rule) => [rule.name, rule] as const))('%s', async ([, { applies, find }]) => {
  const wrong: string[] = []
  for (const path of files.filter(applies)) {
    const found = find(path, await textOf(path))
    if (found.length > 0) wrong.push(`${path}: ${[...new Set(found)].join(', ')}`)
  }
  expect(wrong).toEqual([])
})

test('every source is used', async () => {
  expect(await unusedSources()).toEqual([])
})
