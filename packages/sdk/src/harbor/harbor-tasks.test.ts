import { execFile } from 'node:child_process'
import { rm, symlink } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { SandlotError } from '@sandlot/protocol'
import { describe, expect, test } from 'vitest'
import { harborDigest } from './digest.ts'
import { type HarborOptions, harborTasks } from './harbor-tasks.ts'
import { below, folderOf, LEAST } from './testing/folder.ts'

/** The one task of these files. */
async function read(files: Record<string, string>, options: HarborOptions = {}) {
  await using folder = await folderOf({ ...LEAST, ...files })
  const [task, ...more] = await harborTasks(folder.path, options)
  expect(more).toEqual([])
  if (!task) throw new Error('there is one')
  return task
}

/** What is wrong with these files, a line each. */
async function wrong(files: Record<string, string>, options: HarborOptions = {}) {
  await using folder = await folderOf(files)
  const error = await harborTasks(folder.path, options).catch((thrown: unknown) => thrown)
  if (!(error instanceof SandlotError)) throw new Error(`it is read: ${error}`)
  expect(error.code).toBe('invalid_request')
  return error.message
    .split('\n')
    .slice(1)
    .map((line) => line.trim())
}

describe('a task', () => {
  test('of version 1.0 and the least that it may have', async () => {
    const task = await read({})
    expect(task).toMatchObject({
      key: basename(task.directory),
      instruction: 'Do it.\n',
      environment: { resources: {}, env: {}, network: 'open' },
      agent: {},
      verifier: { timeoutMs: 600_000, env: {}, files: [{ name: 'test.sh' }] },
      notes: [],
    })
    expect(task.environment.image.base).toMatchObject({
      kind: 'dockerfile',
      path: join(task.directory, 'environment/Dockerfile'),
      options: { timeout: 600_000 },
    })
    expect(task).not.toHaveProperty('solution')
    expect(task).not.toHaveProperty('steps')
  })

  test('of version 1.0 with all that it may have', async () => {
    const task = await read(
      {
        'task.toml': `version = "1.0"
[metadata]
author_name = "A"
tags = ["x"]
made = 2025-01-02
[metadata.more]
any = [1, "2"]
[verifier]
timeout_sec = 120.0
env = { API_KEY = "\${KEY}", MODE = "\${MODE:-fast}", PLAIN = "a\${KEY}" }
[agent]
timeout_sec = 360
[solution]
env = { KEY = "\${KEY}" }
[environment]
build_timeout_sec = 60.5
cpus = 2
memory = "2G"
storage = "512M"
allow_internet = false
`,
        'solution/solve.sh': 'true',
        'solution/data/a.txt': 'a',
        'tests/test_outputs.py': 'pass',
      },
      { env: { KEY: 'secret' } },
    )
    expect(task).toMatchObject({
      environment: {
        resources: {
          cpu: { request: 0.1, limit: 2 },
          memory: { request: 20 * 2 ** 20, limit: 2 ** 31 },
          disk: 2 ** 29,
        },
        network: 'none',
      },
      agent: { timeoutMs: 360_000 },
      verifier: {
        timeoutMs: 120_000,
        env: { API_KEY: 'secret', MODE: 'fast', PLAIN: 'a$' + '{KEY}' },
        files: [{ name: 'test.sh' }, { name: 'test_outputs.py' }],
      },
      solution: { env: { KEY: 'secret' }, files: [{ name: 'data/a.txt' }, { name: 'solve.sh' }] },
      notes: [],
    })
    expect(task.environment.image.base).toMatchObject({ options: { timeout: 60_500 } })
  })

  test('of version 1.4', async () => {
    const task = await read({
      'task.toml': `schema_version = "1.4"
artifacts = ["/app/out.json", { source = "/logs/agent", exclude = ["*.tmp"] }]
[task]
name = "org/name"
description = "d"
authors = [{ name = "A", email = "a@b" }]
[verifier]
user = 0
network_mode = "no-network"
[verifier.environment]
docker_image = "grader:1"
memory_mb = 512
[agent]
user = "agent"
network_mode = "allowlist"
allowed_hosts = ["api.example.org", "*.example.net"]
[environment]
docker_image = "some/image:tag"
os = "Linux"
workdir = "/app"
gpus = 0
env = { A = "1" }
skills_dir = "/skills"
`,
      'environment/seed.txt': 'x',
    })
    expect(task).toMatchObject({
      name: 'org/name',
      environment: { workdir: '/app', env: { A: '1' }, network: 'open' },
      agent: { user: 'agent', network: { allow: ['api.example.org', '*.example.net'] } },
      verifier: {
        user: '0',
        network: 'none',
        separate: {
          environment: { resources: { memory: { limit: 512 * 2 ** 20 } }, network: 'open' },
          artifacts: [
            { path: '/logs/artifacts', exclude: [] },
            { path: '/app/out.json', exclude: [] },
            { path: '/logs/agent', exclude: ['*.tmp'] },
          ],
        },
      },
    })
    // The Dockerfile made the named image: its files are in there.
    expect(task.environment.image).toMatchObject({
      base: { kind: 'registry', reference: 'some/image:tag' },
      steps: [{ kind: 'copy', to: '/' }],
    })
  })

  test('has a named image, or its Dockerfile where that is asked for; files beside none are placed', async () => {
    const named = { 'task.toml': '[environment]\ndocker_image = "a:1"\n' }
    const built = await read(named, { build: true })
    expect(built.environment.image.base).toMatchObject({ kind: 'dockerfile' })
    await using folder = await folderOf({ ...LEAST, ...named, 'environment/seed.txt': 'x' })
    await rm(join(folder.path, 'environment/Dockerfile'))
    const [task] = await harborTasks(folder.path, { build: true })
    expect(task?.environment.image).toMatchObject({
      base: { kind: 'registry', reference: 'a:1' },
      steps: [
        { kind: 'copy', to: '.' },
        { kind: 'copy', to: '/' },
      ],
    })
  })

  test('of several steps', async () => {
    const task = await read({
      'task.toml': `schema_version = "1.2"
multi_step_reward_strategy = "final"
artifacts = ["/a"]
[agent]
timeout_sec = 60
user = "me"
[verifier]
timeout_sec = 50
user = "judge"
env = { A = "1", B = "1" }
[[steps]]
name = "one"
min_reward = 0.5
[steps.agent]
timeout_sec = 5
[[steps]]
name = "two"
min_reward = { tests = 1.0 }
artifacts = ["/b"]
[steps.verifier]
timeout_sec = 7
env = { B = "2" }
`,
      'steps/one/instruction.md': 'First.',
      'steps/one/workdir/setup.sh': 'true',
      'steps/one/solution/solve.sh': 'true',
      'steps/two/instruction.md': '# canary\nSecond.',
      'steps/two/tests/test.sh': 'of its own',
      'steps/two/tests/b.py': 'b',
      'tests/a.py': 'a',
    })
    expect(task).not.toHaveProperty('verifier')
    expect(task.instruction).toBe('')
    expect(task.steps?.reward).toBe('final')
    const [one, two] = task.steps?.list ?? []
    expect(one).toMatchObject({
      name: 'one',
      instruction: 'First.',
      agent: { timeoutMs: 5_000, user: 'me' },
      verifier: { timeoutMs: 600_000, user: 'judge', env: { A: '1', B: '1' } },
      solution: { files: [{ name: 'solve.sh' }] },
      workdir: [{ name: 'setup.sh' }],
      minReward: { reward: 0.5 },
    })
    expect(two).toMatchObject({
      instruction: 'Second.',
      agent: { timeoutMs: 60_000, user: 'me' },
      verifier: { timeoutMs: 7_000, user: 'judge', env: { A: '1', B: '2' } },
      minReward: { tests: 1 },
      workdir: [],
    })
    const tests = (files: typeof task.steps) =>
      files?.list.map(({ verifier }) =>
        verifier.files.map(({ name, path }) => `${name} ${path.includes('/steps/')}`).sort(),
      )
    expect(tests(task.steps)).toEqual([
      ['a.py false', 'test.sh false'],
      ['a.py false', 'b.py true', 'test.sh true'],
    ])
  })

  test('says what of it has no meaning, and goes on', async () => {
    const task = await read({
      'task.toml': `schema_version = "1.9"
extra = 1
[environment]
docker_flags = "-v"
[agent]
name = "x"
`,
    })
    expect(task.notes).toEqual([
      'task.toml: environment.docker_flags is no field of the format: passed over',
      'task.toml: agent.name is no field of the format: passed over',
      'task.toml: extra is no field of the format: passed over',
      'task.toml: schema_version 1.9 is newer than 1.4, as which it is read',
    ])
  })
})

describe('folders', () => {
  test('of tasks are read in order, those in folders too, and hidden ones are not', async () => {
    await using folder = await folderOf({
      ...below('b', LEAST),
      ...below('a', LEAST),
      ...below('more/c', LEAST),
      ...below('.git', LEAST),
      'README.md': 'x',
    })
    const tasks = await harborTasks(folder.path)
    expect(tasks.map(({ key }) => key)).toEqual(['a', 'b', 'more/c'])
  })

  test('without a task, and what is no folder, are refused', async () => {
    await using folder = await folderOf({ 'a/b.txt': '' })
    await expect(harborTasks(folder.path)).rejects.toMatchObject({
      code: 'invalid_request',
      message: `${folder.path} is no task folder, and none is below it`,
      hint: expect.stringContaining('task.toml'),
    })
    for (const name of ['nothing', 'a/b.txt']) {
      await expect(harborTasks(join(folder.path, name))).rejects.toMatchObject({
        code: 'local_file_failed',
      })
    }
    await expect(harborTasks(folder.path, { builds: true } as never)).rejects.toThrow('builds')
  })

  test('in which something is wrong are refused at once, each by file and field', async () => {
    const bad = await wrong({
      ...below('good', LEAST),
      'a/task.toml': '[environment\n',
      ...below('b', LEAST),
      'b/task.toml': `[environment]
gpus = 1
mcp_servers = [{ name = "m" }]
os = "windows"
memory_mb = 1
[environment.healthcheck]
command = "true"
[verifier]
env = { KEY = "\${KEY}" }
collect = [{ command = "true" }]
[agent]
allowed_hosts = ["http://a.b"]
`,
      ...below('c', LEAST),
      'c/task.toml': `[agent]
timeout_sec = "soon"
[verifier]
timeout_sec = 0
environment_mode = "elsewhere"
[environment]
cpus = -1
workdir = "app"
`,
      'd/task.toml': '',
      ...below('e', LEAST),
      'e/environment/docker-compose.yaml': '',
      ...below('f', LEAST),
      'f/environment/Dockerfile': 'FROM a\nBUILD this\n',
      ...below('g', LEAST),
      'g/task.toml': 'version = "2.0"',
      ...below('h', LEAST),
      'h/task.toml': 'schema_version = 1.0',
    })
    expect(bad).toEqual([
      expect.stringMatching(/^a\/task\.toml: line 1, column \d+: \S/),
      "b/task.toml: environment.os: windows can't run here: sandboxes are Linux",
      'b/task.toml: environment.gpus: sandboxes have no GPU',
      'b/task.toml: environment.mcp_servers: servers beside the sandbox are not supported',
      expect.stringMatching(/^b\/task\.toml: environment\.healthcheck: is not supported/),
      expect.stringMatching(/^b\/task\.toml: environment: .*96MiB/),
      expect.stringMatching(/^b\/task\.toml: verifier\.collect: /),
      expect.stringMatching(/^b\/task\.toml: verifier\.env\.KEY: wants a value for KEY/),
      expect.stringMatching(/^b\/task\.toml: agent\.allowed_hosts\[0\]: "http:\/\/a\.b" /),
      expect.stringMatching(/^c\/task\.toml: environment\.cpus: /),
      'c/task.toml: environment.workdir: is no absolute path',
      expect.stringMatching(/^c\/task\.toml: agent\.timeout_sec: .*number/),
      expect.stringMatching(/^c\/task\.toml: verifier\.timeout_sec: .*above 0/),
      expect.stringMatching(/^c\/task\.toml: verifier\.environment_mode: .*"shared"/),
      expect.stringMatching(/^d\/environment\/Dockerfile: is missing/),
      expect.stringMatching(/^d\/instruction\.md: can not be read: no such file/),
      expect.stringMatching(/^d\/tests\/test\.sh: is missing/),
      'e/environment/docker-compose.yaml: several containers for one task are not supported',
      expect.stringMatching(/^f\/environment\/Dockerfile: .*BUILD.*/),
      expect.stringMatching(/^g\/task\.toml: version: "2\.0" is not known/),
      expect.stringMatching(/^h\/task\.toml: schema_version: is no text/),
    ])
  })

  test('of steps are refused by step', async () => {
    const bad = await wrong({
      ...LEAST,
      'task.toml': `[verifier]
environment_mode = "separate"
[[steps]]
name = "one"
[steps.healthcheck]
command = "true"
[[steps]]
name = "one"
[[steps]]
name = "../up"
`,
    })
    expect(bad).toEqual([
      expect.stringMatching(/^task\.toml: steps\[2\]\.name: is no name of a folder/),
    ])
    const files = await wrong({
      'task.toml': `[verifier]
environment_mode = "shared"
artifacts = [1]
[[steps]]
name = "one"
artifacts = ["out", { source = "/x", service = "db" }]
[steps.verifier.environment]
docker_image = "a"
[[steps]]
name = "one"
[[steps]]
name = "two"
`,
      'environment/Dockerfile': 'FROM a',
    })
    expect(files).toEqual([
      expect.stringMatching(/^steps\/one\/instruction\.md: /),
      expect.stringMatching(/^steps\/two\/instruction\.md: /),
      expect.stringMatching(/^task\.toml: steps\[0\]\.artifacts\[0\]: out is no absolute path/),
      expect.stringMatching(/^task\.toml: steps\[0\]\.artifacts\[1\]: there is no service db/),
      expect.stringMatching(
        /^task\.toml: steps\[0\]\.verifier\.environment_mode: "shared", and yet/,
      ),
      'task.toml: steps[1].name: one is there already',
      expect.stringMatching(/^tests\/test\.sh: is missing/),
    ])
  })

  test('with files that can’t be brought are refused by the file', async () => {
    await using folder = await folderOf({
      ...LEAST,
      'instruction.md': 'x'.repeat(2 ** 20 + 1),
      'tests/real': 'x',
    })
    await symlink('real', join(folder.path, 'tests/link'))
    await symlink('/etc/passwd', join(folder.path, 'tests/out'))
    await symlink('nothing', join(folder.path, 'tests/nowhere'))
    await promisify(execFile)('mkfifo', [join(folder.path, 'tests/fifo')])
    const error: SandlotError = await harborTasks(folder.path).catch((thrown) => thrown)
    expect(error.details?.problems).toEqual([
      { file: 'instruction.md', problem: 'is longer than 1 MiB' },
      { file: 'tests/fifo', problem: expect.stringMatching(/neither a file/) },
      { file: 'tests/nowhere', problem: 'is a link that leads nowhere' },
      { file: 'tests/out', problem: 'is a link out of the task folder' },
    ])
  })
})

test('the digest of a task changes with any of its files, and not with their times', async () => {
  await using folder = await folderOf(LEAST)
  await using same = await folderOf(LEAST)
  await using other = await folderOf({ ...LEAST, 'tests/test.sh': 'echo 0' })
  const digests = await Promise.all(
    [folder, same, other].map(({ path }) => harborDigest({ directory: path })),
  )
  expect(digests[0]).toMatch(/^sha256:[0-9a-f]{64}$/)
  expect(digests[1]).toBe(digests[0])
  expect(digests[2]).not.toBe(digests[0])
})

test('several folders are read one after another, and none of two is taken for the other', async () => {
  await using one = await folderOf({ ...below('x', LEAST), ...below('y', LEAST) })
  await using other = await folderOf(below('z', LEAST))
  const keys = async (...paths: string[]) => (await harborTasks(paths)).map(({ key }) => key)
  expect(await keys(other.path, one.path)).toEqual(['z', 'x', 'y'])
  expect(await keys(join(one.path, 'y'), other.path)).toEqual(['y', 'z'])
  await expect(keys(one.path, join(one.path, 'x'))).rejects.toThrow('are both called x')
})
