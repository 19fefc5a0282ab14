import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryDirectory } from '@sandlot/testkit'
import { expect, test } from 'vitest'
import { fileRevision, revisionOf } from './revision.ts'

test.each([
  ['sandlot-agent 0.1.0 (revision 12)', 12],
  ['0.1.0', 0],
  ['sandlot-agent 0.1.0', 0],
  ['sandlot-agent 0.1.0 (revision x)', 0],
])('%s is of revision %d', (agent, revision) => {
  expect(revisionOf(agent)).toBe(revision)
})

test('it is found in a program, between bytes of all kinds', async () => {
  await using directory = await temporaryDirectory()
  const path = join(directory.path, 'agent')
  const said = Buffer.from('circlesandlot-agent 0.1.0 (revision 7)9 sandlot-agent')
  await writeFile(path, Buffer.concat([Buffer.from([0xff, 0, 0xc3]), said, Buffer.from([0x80])]))
  expect(await fileRevision(path)).toBe(7)
})
