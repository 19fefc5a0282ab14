/** `npm run docs`: writes every document that is made from the sources. */
import { readFile, writeFile } from 'node:fs/promises'
import { stdout } from 'node:process'
import { DOCUMENTS } from './documents.ts'

const top = new URL('../../', import.meta.url)

for (const { path, text } of DOCUMENTS) {
  const file = new URL(path, top)
  const before = await readFile(file, 'utf8').catch(() => '')
  const after = await text(before)
  if (after === before) continue
  await writeFile(file, after)
  stdout.write(`${path}\n`)
}
