import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryDirectory } from '@sandlot/testkit'
import { expect, test } from 'vitest'
import { readProgramTasks } from './program-tasks.ts'

async function ownOf(sandlot: object) {
  await using directory = await temporaryDirectory()
  const file = join(directory.path, 'tasks.jsonl')
  await writeFile(file, `${JSON.stringify({ id: 'a', sandlot })}\n`)
  const [task] = await readProgramTasks(file)
  return { own: task?.own, folder: directory.path }
}

const last = { name: 'build', run: 'make' }

test('a line may have steps, and graders in images of their own', async () => {
  const grade = { run: ['check'], from: 'im_00000000000000000000', pass: ['/out'] }
  const first = { name: 'plan', run: 'plan', grade, files: { '/in': { path: 'in.txt' } } }
  const { own, folder } = await ownOf({ steps: [first, last], rewards: 'mean', grade })
  expect(own).toEqual({
    steps: [{ ...first, files: { '/in': { path: join(folder, 'in.txt') } } }, last],
    ...{ rewards: 'mean', grade },
  })
})

test.each<[string, object, string]>([
  ['a step without a grade', { steps: [{ name: 'plan', run: 'x' }, last] }, 'has a grade'],
  ['a step without a command', { steps: [{ name: 'plan' }] }, 'sandlot.steps.0.run: '],
  ['what is no step', { steps: 'one' }, 'steps'],
  ['a relative path', { grade: { pass: ['out'] } }, 'sandlot.grade.pass.0: '],
])('%s is refused by its line', async (_, sandlot, why) => {
  await expect(ownOf(sandlot)).rejects.toThrow(/line 1: /)
  await expect(ownOf(sandlot)).rejects.toThrow(why)
})

test('what editors leave around lines is no part of them', async () => {
  await using directory = await temporaryDirectory()
  const file = join(directory.path, 'tasks.jsonl')
  await writeFile(file, '\uFEFF{"id":"a"}\r\n\r\n  {"id":"b"}\t\r\n\uFEFF\n')
  expect((await readProgramTasks(file)).map(({ key }) => key)).toEqual(['a', 'b'])
})
