import { allFiles, textOf } from '@sandlot/testkit/repository'
import { expect, test } from 'vitest'
import { BENCHES } from '../../bench/benches.ts'

/** Rows of the table of promises: the figure's name and the number of its target. */
async function promises(): Promise<{ name: string; target: number }[]> {
  const table = (await textOf('SPECIFICATION.md')).split('## What holds')[0] ?? ''
  return [...table.matchAll(/^\|[^|]+\| [≤≥] ([\d,.]+)[^|]*\| `([a-z0-9.-]+)` \|$/gm)].map(
    ([, target = '', name = '']) => ({ name, target: Number(target.replaceAll(',', '')) }),
  )
}

test('every promise names a figure that a bench takes', async () => {
  const rows = await promises()
  expect(rows.length).toBeGreaterThan(10)
  const sources = (await allFiles()).filter((path) => path.startsWith('bench/figures/'))
  const text = (await Promise.all(sources.map(textOf))).join('\n')
  for (const { name, target } of rows) {
    expect(BENCHES.map((bench) => bench.name)).toContain(name.split('.')[0])
    expect(text.includes(`'${name}'`), `no bench takes ${name}`).toBe(true)
    const isTarget = new RegExp(`at(Most|Least): ${target}\\b`).test(text.replaceAll('_', ''))
    expect(isTarget, `no bench holds a figure such as ${name} to ${target}`).toBe(true)
  }
})
