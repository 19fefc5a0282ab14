import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'

const catalogue = new URL('../hostile.md', import.meta.url)

/** `| behaviour | right answer | [test](file) |` */
const ROW = /^\| (.+) \| (.+) \| \[(.+)\]\((.+)\) \|$/

test('every behaviour of the catalogue is shown by a test that there is', async () => {
  const text = await readFile(catalogue, 'utf8')
  const lines = text.split('\n').filter((line) => line.startsWith('| '))
  const rows = lines.slice(1)
  expect(rows.length).toBeGreaterThan(40)
  for (const line of rows) {
    const row = ROW.exec(line)
    expect(row, line).not.toBeNull()
    const [, , , name = '', path = ''] = row ?? []
    const source = await readFile(new URL(path, catalogue), 'utf8')
    expect(source.includes(name), `${path} has no test "${name}"`).toBe(true)
  }
})
