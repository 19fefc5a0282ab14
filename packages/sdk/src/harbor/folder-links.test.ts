import { rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { harborTasks } from './harbor-tasks.ts'
import { below, folderOf, LEAST } from './testing/folder.ts'

test.each([
  ['instruction.md', '/etc/passwd'],
  ['task.toml', '../other/task.toml'],
  ['environment', '../other/environment'],
  ['environment/Dockerfile', '../../other/environment/Dockerfile'],
])('%s is no link out of its folder', async (name, target) => {
  await using folder = await folderOf({ ...below('t', LEAST), ...below('other', LEAST) })
  await rm(join(folder.path, 't', name), { recursive: true })
  await symlink(target, join(folder.path, 't', name))
  const { details } = await harborTasks(folder.path).catch((reason) => reason)
  const problem = 'is a link out of the task folder'
  expect(details.problems).toEqual([{ file: `t/${name}`, problem }])
})

test('a folder of tasks may itself be reached by a link, and so may its files within it', async () => {
  await using folder = await folderOf(below('t', { ...LEAST, 'texts/a.md': 'Do it.' }))
  await rm(join(folder.path, 't/instruction.md'))
  await symlink('texts/a.md', join(folder.path, 't/instruction.md'))
  await symlink('t', join(folder.path, 'link'))
  const tasks = await harborTasks(join(folder.path, 'link'))
  expect(tasks.map(({ instruction }) => instruction)).toEqual(['Do it.'])
})
