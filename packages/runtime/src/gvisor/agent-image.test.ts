import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryDirectory } from '@sandlot/testkit'
import { expect, test } from 'vitest'
import { agentImage } from './agent-image.ts'

test('one image for each agent, the same bytes each time', async () => {
  await using one = await temporaryDirectory()
  await using two = await temporaryDirectory()
  const agent = join(one.path, 'binary')
  await writeFile(agent, 'first')
  const images = await Promise.all([
    agentImage({ agent, dataDirectory: one.path }),
    agentImage({ agent, dataDirectory: one.path }),
    agentImage({ agent, dataDirectory: two.path }),
  ])
  expect(images[0]).toBe(images[1])
  expect(await readFile(images[0] ?? '')).toEqual(await readFile(images[2] ?? ''))
  await writeFile(agent, 'second')
  expect(await agentImage({ agent, dataDirectory: one.path })).not.toBe(images[0])
  expect(await readdir(join(one.path, 'agent')).catch(() => [])).toHaveLength(2)
})
