import { existsSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { pages, textOf, top } from '@sandlot/testkit/repository'
import { expect, test } from 'vitest'
import { anchorOf } from '../generate/markdown.ts'

test('every link between files leads somewhere', async () => {
  const wrong: string[] = []
  for (const page of await pages()) {
    for (const [, target = ''] of withoutCode(await textOf(page)).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue
      const [path = '', anchor] = target.split('#')
      const file = path === '' ? page : normalize(join(dirname(page), path))
      if (!existsSync(join(top, file))) wrong.push(`${page}: ${target}`)
      else if (anchor !== undefined && !(await anchorsOf(file)).has(anchor)) {
        wrong.push(`${page}: ${target} has no such heading`)
      }
    }
  }
  expect(wrong).toEqual([])
})

async function anchorsOf(page: string): Promise<Set<string>> {
  const headings = withoutCode(await textOf(page)).matchAll(/^#+ (.+)$/gm)
  return new Set([...headings].map(([, heading = '']) => anchorOf(heading)))
}

function withoutCode(text: string): string {
  return text.replaceAll(/^```[\s\S]*?^```$/gm, '')
}
