import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type HarborOptions, harborTasks } from './harbor-tasks.ts'
import { type HarborAgent, INSTRUCTION_FILE } from './places.ts'
import { harborProgram } from './program.ts'
import { below, folderOf, LEAST } from './testing/folder.ts'

async function programOf(
  agent: HarborAgent,
  files: Record<string, string> = {},
  options: HarborOptions & { open?: 'none' } = {},
) {
  const { open, ...reading } = options
  await using folder = await folderOf({ ...LEAST, ...files })
  const tasks = await harborTasks(folder.path, reading)
  const run = harborProgram(tasks, { agent, ...(open ? { open } : {}) })
  const [task] = tasks
  if (!task) throw new Error('there is one')
  const own = await run.each?.(task, 0)
  if (!own) throw new Error('each task has something of its own')
  return { run, own, task }
}

const SETTINGS = `[environment]
workdir = "/app"
env = { A = "1" }
allow_internet = false
cpus = 2
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
  const { run, own, task } = await programOf({ command: 'agent --now' }, { 'task.toml': SETTINGS })
  expect(own).toMatchObject({
    ...{ command: 'agent --now', cwd: '/app', user: 'me' },
    env: { A: '1', INSTRUCTION: 'Do it.\n', INSTRUCTION_FILE },
    files: { [INSTRUCTION_FILE]: 'Do it.\n' },
    timeout: { agent: 5_000, grade: 7_000 },
    network: { agent: 'none', grade: 'packages' },
    resources: { cpu: { limit: 2 } },
    grade: {
      ...{ cwd: '/app', env: { A: '1', B: '2' } },
      files: { '/tests/test.sh': { path: expect.stringMatching(/tests\/test\.sh$/), mode: 0o755 } },
    },
  })
  expect(own.from).toBe(task.environment.image)
  expect(run.grade).toMatchObject({
    ...{ in: 'world', clear: ['/tests', '/logs/verifier'] },
    run: ['/bin/sh', '-c', expect.any(String), 'sh', '/tests/test.sh'],
    reward: { file: ['/logs/verifier/reward.json', '/logs/verifier/reward.txt'] },
  })
  expect(harborProgram([task], { agent: 'nop', in: 'same' }).grade?.in).toBe('same')
  expect(run.key?.(task, 0)).toBe(task.key)
  expect(run.content?.(task, 0)).toMatchObject({ id: task.key, instruction: 'Do it.\n' })
})

test('the solution is there for the oracle alone', async () => {
  const files = { 'task.toml': SETTINGS, 'solution/solve.sh': 'true', 'solution/a/b': 'x' }
  const { own } = await programOf('oracle', files)
  expect(own).toMatchObject({
    command: ['/bin/sh', '-c', expect.any(String), 'sh', '/solution/solve.sh'],
    env: { A: '1', C: '3', DEBIAN_FRONTEND: 'noninteractive' },
  })
  expect(Object.keys(own.files ?? {}).sort()).toEqual([
    ...[INSTRUCTION_FILE, '/solution/a/b', '/solution/solve.sh'],
  ])
  for (const agent of ['nop', { command: ['agent'] }] as const) {
    const other = await programOf(agent, files)
    expect(Object.keys(other.own.files ?? {})).toEqual([INSTRUCTION_FILE])
    expect(Object.keys(other.own.grade?.files ?? {})).toEqual(['/tests/test.sh'])
    expect(other.own.env).not.toHaveProperty('C')
  }
})

test('a text that no variable can hold is in the file alone', async () => {
  for (const text of ['x'.repeat(20_000), 'half\0']) {
    const { own } = await programOf('nop', { 'instruction.md': text })
    expect(own.files?.[INSTRUCTION_FILE]).toBe(text)
    expect(own.env).toEqual({ INSTRUCTION_FILE })
  }
})

test('the whole internet is what the caller says', async () => {
  const both = (policy: string) => ({ agent: policy, grade: policy })
  expect((await programOf('nop')).own.network).toEqual(both('packages'))
  expect((await programOf('nop', {}, { open: 'none' })).own.network).toEqual(both('none'))
})

const STEPS = {
  ...LEAST,
  'task.toml': `multi_step_reward_strategy = "mean"
[environment]
workdir = "/app"
memory_mb = 256
[agent]
timeout_sec = 100
[[steps]]
name = "a"
min_reward = 0.5
[steps.verifier]
timeout_sec = 5
[[steps]]
name = "b"
artifacts = ["/app/out"]
[steps.agent]
timeout_sec = 10
[steps.verifier.environment]
docker_image = "v:1"
memory_mb = 512
env = { V = "1" }
`,
  'steps/a/instruction.md': 'A',
  'steps/a/workdir/setup.sh': 'true',
  'steps/b/instruction.md': 'B',
  'steps/a/solution/solve.sh': 'true',
  'steps/b/solution/solve.sh': 'true',
}

test('steps are those of a program, each but the last with its verifier', async () => {
  const { own, task } = await programOf({ command: 'agent' }, STEPS)
  const file = expect.objectContaining({ mode: 0o755 })
  expect(own).toMatchObject({
    rewards: 'mean',
    timeout: { grade: 600_000 },
    resources: { memory: { limit: 512 * 2 ** 20 } },
    steps: [
      {
        ...{ name: 'a', run: 'agent', cwd: '/app', timeout: 100_000, least: { reward: 0.5 } },
        env: { INSTRUCTION: 'A', INSTRUCTION_FILE },
        files: { [INSTRUCTION_FILE]: 'A', '/run/sandlot/steps/a/setup.sh': file },
        prepare: ['/bin/sh', '-c', expect.stringContaining('setup.sh'), 'sh', expect.any(String)],
        grade: {
          ...{ cwd: '/app', timeout: 5_000, clear: ['/tests', '/logs/verifier'] },
          reward: { file: ['/logs/verifier/reward.json', '/logs/verifier/reward.txt'] },
          files: { '/tests/test.sh': file },
        },
      },
      { name: 'b', run: 'agent', timeout: 10_000 },
    ],
    grade: {
      ...{ pass: ['/logs/artifacts', '/app/out'], clear: ['/logs/verifier'], env: { V: '1' } },
      run: ['/bin/sh', '-c', expect.stringContaining('chmod'), 'sh', '/tests/test.sh'],
    },
  })
  expect(own.steps?.[1]).not.toHaveProperty('grade')
  expect(own.steps?.[1]).not.toHaveProperty('prepare')
  expect(own.grade?.from).toBe(task.steps?.list[1]?.verifier.separate?.environment.image)
  expect(own).not.toHaveProperty('command')
})

test('a task without a solution is in quarantine where the oracle does it', async () => {
  expect((await programOf('oracle')).own).toEqual({
    quarantine: 'solution/solve.sh is missing: the oracle has nothing to run',
  })
  expect((await programOf('nop')).own).not.toHaveProperty('quarantine')
  expect((await programOf('oracle', STEPS)).own).not.toHaveProperty('quarantine')
  const half = { ...STEPS, 'steps/b/solution/solve.sh': '', 'steps/b/solution/other': '' }
  const { 'steps/b/solution/solve.sh': _, ...unsolved } = half
  expect((await programOf('oracle', unsolved)).own.quarantine).toMatch(
    /^steps\/b\/solution\/solve\.sh is missing/,
  )
})

test('what can’t be run is refused at once', async () => {
  const steps = (one: string, other: string) => ({
    ...STEPS,
    'task.toml': `[[steps]]\nname = "a"\n${one}\n[[steps]]\nname = "b"\n${other}\n`,
  })
  await using folder = await folderOf({
    ...below('agents', steps('[steps.agent]\nnetwork_mode = "no-network"', '')),
    ...below('verifiers', steps('', '[steps.verifier]\nnetwork_mode = "no-network"')),
    ...below('exclude', {
      ...LEAST,
      'task.toml': `artifacts = [{ source = "/a", exclude = ["b"] }]
[verifier.environment]
docker_image = "v:1"
`,
    }),
    ...below('good', STEPS),
  })
  const tasks = await harborTasks(folder.path)
  expect(() => harborProgram(tasks, { agent: 'oracle' })).toThrow(
    expect.objectContaining({
      code: 'invalid_request',
      details: {
        problems: [
          {
            ...{ file: 'agents/task.toml', field: 'network_mode' },
            problem: expect.stringContaining('agents'),
          },
          expect.objectContaining({ file: 'exclude/task.toml', field: 'artifacts' }),
          expect.objectContaining({ file: 'verifiers/task.toml', field: 'network_mode' }),
        ],
      },
    }),
  )
  expect(() => harborProgram([], { agent: 'nop' })).toThrow('there are no tasks')
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
