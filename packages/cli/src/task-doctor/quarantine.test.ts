import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Diagnosis } from './diagnose.ts'
import { quarantineOf, readQuarantine, sortOut } from './quarantine.ts'

const sound: Diagnosis = {
  key: 'sound',
  findings: [],
  gold: { trials: 1, passes: 1 },
  null: { trials: 1, passes: 0 },
  goldP95Ms: 1,
  timeoutMs: 1,
  suggestedTimeoutMs: 1,
}
const found = (key: string, condition: Diagnosis['findings'][number]['condition']): Diagnosis => ({
  ...sound,
  key,
  findings: [{ condition, why: `it is ${condition}` }],
})

test('a list has what is unfit, and no more', () => {
  const diagnoses = [
    ...[sound, found('b', 'broken'), found('f', 'flaky'), found('p', 'free')],
    ...[found('u', 'undecided'), found('t', 'tight'), found('n', 'unproven')],
  ]
  const list = quarantineOf(diagnoses, { times: 3, madeAt: 'now', digestOf: (key) => `of ${key}` })
  expect(list).toEqual({
    ...{ schema: 1, madeAt: 'now', times: 3 },
    tasks: [
      { key: 'b', digest: 'of b', condition: 'broken', why: 'it is broken' },
      { key: 'f', digest: 'of f', condition: 'flaky', why: 'it is flaky' },
      { key: 'p', digest: 'of p', condition: 'free', why: 'it is free' },
    ],
  })
})

test('a task is held back as long as it is the same', () => {
  const list = quarantineOf([found('a', 'broken'), found('b', 'free')], {
    ...{ times: 1, madeAt: 'now' },
    digestOf: (key) => `of ${key}`,
  })
  const tasks = ['a', 'b', 'c'].map((key) => ({
    key,
    digest: key === 'b' ? 'mended' : `of ${key}`,
  }))
  expect(sortOut(tasks, list)).toEqual({
    fit: [tasks[1], tasks[2]],
    held: [{ task: tasks[0], entry: list.tasks[0] }],
    changed: [list.tasks[1]],
  })
})

test('a file that is no list is refused by its name', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'sandlot-quarantine-'))
  try {
    const path = join(directory, 'list.json')
    await expect(readQuarantine(path)).rejects.toThrow(`--quarantine ${path} can't be read`)
    for (const text of ['', '{}', '[]', '{"schema": 2, "tasks": []}']) {
      await writeFile(path, text)
      await expect(readQuarantine(path)).rejects.toThrow(`--quarantine ${path} is no list`)
    }
    await writeFile(
      path,
      JSON.stringify(quarantineOf([], { times: 1, madeAt: 'now', digestOf: String })),
    )
    expect(await readQuarantine(path)).toMatchObject({ tasks: [] })
  } finally {
    await rm(directory, { recursive: true })
  }
})
