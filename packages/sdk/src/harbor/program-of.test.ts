import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type HarborOptions, harborTasks } from './harbor-tasks.ts'
import { type HarborAgent, harborProgram, INSTRUCTION_FILE } from './program-of.ts'
import { folderOf, LEAST } from './testing/folder.ts'

async function programOf(
  agent: HarborAgent,
  files: Record<string, string> = {},
  options: HarborOptions & { open?: 'none' } = {},
) {
  const { open, ...reading } = options
  await using folder = await folderOf({ ...LEAST, ...files })
  const [task] = await harborTasks(folder.path, reading)
  if (!task) throw new Error('there is one')
  return harborProgram(task, { agent, ...(open ? { open } : {}) })
}

const SETTINGS = `[environment]
workdir = "/app"
env = { A = "1" }
allow_internet = false
[agent]
timeout_sec = 5
user = "me"
[verifier]
timeout_sec = 7
env = { B = "2" }
network_mode = "public"
[solution]
env = { C = "3" }
`

test('a command is told what is asked, and graded by the tests alone', async () => {
  const { program, grade, timeout, network, from } = await programOf(
    { command: 'agent --now' },
    { 'task.toml': SETTINGS },
  )
  expect(program).toEqual({
    command: 'agent --now',
    env: { A: '1', INSTRUCTION: 'Do it.\n', INSTRUCTION_FILE: INSTRUCTION_FILE },
    files: { [INSTRUCTION_FILE]: 'Do it.\n' },
    cwd: '/app',
    user: 'me',
  })
  expect(grade).toMatchObject({
    ...{ in: 'world', clear: ['/tests', '/logs/verifier'], cwd: '/app', env: { A: '1', B: '2' } },
    command: ['/bin/sh', '-c', expect.any(String), 'sh', '/tests/test.sh'],
    files: { '/tests/test.sh': { path: expect.stringMatching(/tests\/test\.sh$/), mode: 0o755 } },
    reward: { from: 'file', paths: ['/logs/verifier/reward.json', '/logs/verifier/reward.txt'] },
  })
  expect(timeout).toEqual({ agent: 5_000, grade: 7_000 })
  expect(network).toEqual({ agent: 'none', grade: 'packages' })
  expect(from.steps.at(-1)).toMatchObject({ kind: 'copy', to: '/' })
})

test('the solution is there for the oracle alone', async () => {
  const files = { 'task.toml': SETTINGS, 'solution/solve.sh': 'true', 'solution/a/b': 'x' }
  const oracle = await programOf('oracle', files)
  expect(oracle.program).toMatchObject({
    command: ['/bin/sh', '-c', expect.any(String), 'sh', '/solution/solve.sh'],
    env: { A: '1', C: '3', DEBIAN_FRONTEND: 'noninteractive' },
  })
  expect(Object.keys(oracle.program.files).sort()).toEqual([
    ...[INSTRUCTION_FILE, '/solution/a/b', '/solution/solve.sh'],
  ])
  for (const agent of ['nop', { command: ['agent'] }] as const) {
    const { program, grade } = await programOf(agent, files)
    expect(Object.keys(program.files)).toEqual([INSTRUCTION_FILE])
    expect(Object.keys(grade.files)).toEqual(['/tests/test.sh'])
    expect(program.env).not.toHaveProperty('C')
  }
})

test('a text that no variable can hold is in the file alone', async () => {
  for (const text of ['x'.repeat(20_000), 'half\0']) {
    const { program } = await programOf('nop', { 'instruction.md': text })
    expect(program.files[INSTRUCTION_FILE]).toBe(text)
    expect(program.env).toEqual({ INSTRUCTION_FILE: INSTRUCTION_FILE })
  }
})

test('the whole internet is what the caller says', async () => {
  expect((await programOf('nop')).network).toEqual({ agent: 'packages', grade: 'packages' })
  expect((await programOf('nop', {}, { open: 'none' })).network).toEqual({
    agent: 'none',
    grade: 'none',
  })
})

test('what is no program with one grader is refused, and an oracle without a solution', async () => {
  await expect(programOf('oracle')).rejects.toThrow(/has no solution\/solve\.sh/)
  const steps = { 'task.toml': '[[steps]]\nname = "a"\n', 'steps/a/instruction.md': 'x' }
  await expect(programOf('nop', steps)).rejects.toThrow(/has several steps/)
  const separate = { 'task.toml': '[verifier.environment]\ndocker_image = "a"\n' }
  await expect(programOf('nop', separate)).rejects.toThrow(
    /a verifier in an environment of its own/,
  )
})

test('a verifier with an image of its own brings its tests in there', async () => {
  await using folder = await folderOf({
    ...LEAST,
    'task.toml': '[verifier]\nenvironment_mode = "separate"\n',
    'tests/Dockerfile': 'FROM a\n',
  })
  await rm(join(folder.path, 'tests/test.sh'))
  const [task] = await harborTasks(folder.path)
  expect(task?.verifier?.separate?.environment.image.base).toMatchObject({
    kind: 'dockerfile',
    path: join(folder.path, 'tests/Dockerfile'),
  })
})
