/** `sandlot runs start`, against a daemon on sandboxes in memory. */
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FakeScript } from '@sandlot/runtime'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CommandEnd, runCommand, startCommand } from '../harness/command.ts'
import { type FakeDaemon, startFakeDaemon } from './fake-daemon.ts'

/** What `solve` waits for. */
let held: Promise<void> | undefined

/** `solve` writes what its task says to /answer; `check` compares that with the answer that it was brought. */
const script: FakeScript = async ({ argv, env, files }) => {
  const text = (path: string) => Buffer.from(files.bytes(path) ?? '').toString()
  const task = JSON.parse(text(env.SANDLOT_TASK_FILE ?? '') || '{}')
  switch (argv[2]) {
    case 'solve':
      await held
      files.put('/answer', task.says)
      return { stdout: JSON.stringify(Object.keys(task)) }
    case 'check':
      return { stdout: `{"reward": ${text('/answer') === text('/expected') ? 1 : 0}}\n` }
    default:
      return { exitCode: 127, stderr: 'not found' }
  }
}

let daemon: FakeDaemon
let directory: string
let from: string
beforeAll(async () => {
  daemon = await startFakeDaemon({ script })
  from = (await daemon.image()).id
  directory = await mkdtemp(join(tmpdir(), 'sandlot-start-'))
  await mkdir(join(directory, 'data'))
  await writeFile(join(directory, 'data', 'right'), 'right')
  await writeFile(join(directory, 'expected'), 'right')
  await writeFile(join(directory, 'data', 'Dockerfile'), 'FROM im_aaaaaaaaaaaaaaaaaaaa\n')
})
afterAll(async () => {
  await daemon[Symbol.asyncDispose]()
  await rm(directory, { recursive: true })
})

function start(argv: readonly string[], input?: string): Promise<CommandEnd> {
  const { url, apiKey } = daemon
  return runCommand(['runs', 'start', ...argv], {
    environment: { SANDLOT_URL: url, SANDLOT_API_KEY: apiKey },
    ...(input === undefined ? {} : { input }),
  })
}

async function fileOf(lines: readonly unknown[], name = 'data/tasks.jsonl'): Promise<string> {
  const text = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line)))
  const path = join(directory, name)
  await writeFile(path, `${text.join('\n')}\n`)
  return path
}

const graded = () => [
  ...['--command', 'solve', '--grade', 'check', '--reward', 'stdout'],
  ...['--grade-file', `/expected=${join(directory, 'expected')}`],
]

test('tasks of a file are submitted, and the name of their run is printed', async () => {
  const file = await fileOf([
    { id: 'a', says: 'right' },
    '',
    { id: 7, says: 'wrong', sandlot: { timeout: { agent: '5m' } } },
    {
      says: 'own',
      sandlot: {
        grade: { files: { '/expected': 'own' } },
        from,
        files: { '/x': { path: 'right' } },
      },
    },
  ])
  const { promise, resolve: letGo } = Promise.withResolvers<void>()
  held = promise
  const end = await start([file, '--from', from, '--name', 'of-a-file', ...graded()])
  letGo()
  expect(end).toMatchObject({ code: 0, stdout: 'of-a-file\n' })
  expect(end.stderr).toContain('sandlot runs watch of-a-file')
  const run = await daemon.client().rollouts.get('of-a-file')
  const rows = await run.wait()
  const rewards = Object.fromEntries(rows.map(({ key, reward }) => [key, reward]))
  expect(rewards).toEqual({ a: 1, '7': 0, '2': 1 })
  // What a task has of its own is none of its program's business.
  const row = rows.find(({ key }) => key === '7')
  const said = row && (await run.artifact(row, 'agent.stdout'))
  expect(Buffer.from(said ?? '').toString()).toBe('["id","says"]')
})

test('tasks come by a pipe too, and the run is followed to its report', async () => {
  const input = '{"id": "only", "says": "right"}\n'
  const end = await start(['-', '--from', from, '--name', 'piped', '--watch', ...graded()], input)
  expect(end.code).toBe(0)
  expect(end.stdout).toMatch(/^piped\n/)
  expect(end.stdout).toMatch(/mean reward \(valid\) +1\.000/)
})

test('what its episodes leave is kept, where that is asked for', async () => {
  const file = await fileOf([
    { id: 'a', says: 'right' },
    { id: 'b', says: 'wrong' },
  ])
  const leaves = ['--artifact', '/ans*', '--artifact', '/none/*', '--keep', 'always']
  const end = await start([file, '--from', from, ...graded(), ...leaves, '--name', 'left'])
  expect(end).toMatchObject({ code: 0, stdout: 'left\n' })
  const rows = await (await daemon.client().rollouts.get('left')).wait()
  for (const { artifacts, kept } of rows) {
    expect(artifacts.map(({ name }) => name)).toContain('/answer')
    expect(kept).toMatch(/^sn_/)
  }
  for (const [option, value, said] of [
    ['--keep', 'some', 'not on-failure, always or a whole number'],
    ['--keep', '1000', '--keep'],
    ['--artifact', 'answer', '--artifact'],
  ] as const) {
    const wrong = await start([file, '--from', from, ...graded(), option, value])
    expect(wrong).toMatchObject({ code: 2, stdout: '' })
    expect(wrong.stderr).toContain(said)
  }
})

test('the same command again attaches to the run, and with other tasks adds them', async () => {
  const argv = ['--from', from, '--name', 'again', '--group', '2', ...graded()]
  const file = await fileOf([{ id: 'a', says: 'right' }])
  expect((await start([file, ...argv])).code).toBe(0)
  await (await daemon.client().rollouts.get('again')).wait()
  expect(await start([file, ...argv])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/finished already.*\n.*--if-exists attach/),
  })
  const attached = await start([file, ...argv, '--if-exists', 'attach'])
  expect(attached).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/done already.*sandlot runs results again/),
  })
  const { counts } = await (await daemon.client().rollouts.get('again')).view()
  expect(counts.done).toBe(2)
})

test.each([
  [[], ['b', 'c']],
  [
    ['--group', '2'],
    ['b#0', 'b#1', 'c#0', 'c#1'],
  ],
])('what a run has no valid result of is run by another one (%j)', async (group, keys) => {
  const first = `first-${group.length}`
  const argv = ['--from', from, ...graded(), ...group]
  const failing = await fileOf([
    { id: 'a', says: 'wrong' },
    { id: 'b', says: 'right', sandlot: { command: 'nothere' } },
  ])
  expect((await start([failing, ...argv, '--name', first])).code).toBe(0)
  await (await daemon.client().rollouts.get(first)).wait()
  const mended = await fileOf(['a', 'b', 'c'].map((id) => ({ id, says: 'right' })))
  const again = ['--missing-from', first]
  expect(await start([mended, ...argv, ...again, '--name', first])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(`${first} is both the run that is looked at and the new one`),
  })
  const end = await start([mended, ...argv, ...again, '--name', `${first}-again`])
  expect(end).toMatchObject({ code: 0, stdout: `${first}-again\n` })
  expect(end.stderr).toContain(`2 of 3 tasks have no valid result in ${first}`)
  const rows = await (await daemon.client().rollouts.get(`${first}-again`)).wait()
  expect(rows.map(({ key }) => key).sort()).toEqual(keys)
  const third = await start([mended, ...argv, '--missing-from', `${first}-again`])
  expect(third.stderr).toContain(`1 of 3 tasks has no valid result in ${first}-again`)
  // What either has is not made again.
  const both = await start([mended, ...argv, ...again, '--missing-from', `${first}-again`])
  expect(both).toMatchObject({ code: 0, stdout: '' })
  expect(both.stderr).toContain(`0 of 3 tasks have no valid result in any of ${first}, ${first}`)
})

test('no image is built of a task that has its result', async () => {
  const argv = ['--from', from, ...graded()]
  const done = await fileOf([{ id: 'a', says: 'right' }])
  expect((await start([done, ...argv, '--name', 'imageless', '--watch'])).code).toBe(0)
  // Its image can't be built.
  const more = await fileOf([
    { id: 'a', says: 'right', sandlot: { from: 'dockerfile:Dockerfile' } },
    { id: 'b', says: 'right' },
  ])
  const end = await start([more, ...argv, '--missing-from', 'imageless', '--name', 'imageless-2'])
  expect(end).toMatchObject({ code: 0, stdout: 'imageless-2\n' })
})

test('where nothing is missing nothing is started, and of a run that goes on nobody knows what is', async () => {
  const file = await fileOf([{ id: 'a', says: 'right' }])
  const argv = [file, '--from', from, ...graded()]
  expect((await start([...argv, '--name', 'whole', '--watch'])).code).toBe(0)
  expect(await start([...argv, '--missing-from', 'whole'])).toMatchObject({
    code: 0,
    stdout: '',
    stderr: expect.stringMatching(
      /0 of 1 task have no valid result in whole\n.*nothing is started/,
    ),
  })
  const open = daemon.client().rollouts.open('open', { command: ['solve'] }, { from })
  await open.created
  expect(await start([...argv, '--missing-from', 'open'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('open is not over'),
  })
  await open.close()
  expect((await start([...argv, '--missing-from', 'nowhere'])).stderr).toContain('nowhere')
})

test.each([
  [['{"id": 1}', '{"id": 2'], /line 2 is not JSON/],
  [['[1]'], /line 1 is not a JSON object/],
  [['{"id": "a"}', '', '{"id": "a"}'], /line 3: the key "a" is that of line 1/],
  [['{"id": {}}'], /line 1: its `id` is no key/],
  [['{"sandlot": 1}'], /line 1: sandlot is not an object/],
  [['{"sandlot": {"tiemout": {}}}'], /line 1: sandlot: Unrecognized key: "tiemout"/],
  [['{"sandlot": {"timeout": {"agent": "long"}}}'], /line 1: sandlot\.timeout\.agent/],
  [['{"sandlot": {"command": []}}'], /line 1: sandlot\.command/],
  [['{"sandlot": {"grade": {"run": 5}}}'], /line 1: sandlot\.grade/],
  [['{"sandlot": {"files": {"/a": 5}}}'], /line 1: sandlot\.files/],
  [['{"sandlot": {"from": "python:3.12"}}'], /registry:python:3\.12/],
  [['{"id": "a", "sandlot": {"from": "im_nothere"}}'], /there is no image/],
  [
    ['{"id": "a"}', '{"id": "b", "sandlot": {"from": "dockerfile:Dockerfile"}}'],
    /images can not be built:\n {2}b: .*im_aaaaaaaaaaaaaaaaaaaa/,
  ],
  [[], /has no tasks/],
])('of %j the line that is wrong is named, and nothing is begun', async (lines, wrong) => {
  const file = await fileOf(lines)
  const name = `wrong-${Math.abs(lines.join('').length)}-${lines.length}`
  const end = await start([file, '--from', from, '--name', name, '--command', 'solve'])
  expect(end.stderr).toMatch(wrong)
  expect(end.code).toBe(2)
  await expect(daemon.client().rollouts.get(name)).rejects.toMatchObject({ code: 'run_unknown' })
})

test.each([
  [['--command', 'x'], /--from/],
  [['--from', 'FROM'], /--command/],
  [['--from', 'FROM', '--command', 'x', '--reward', 'file:rel'], /--reward file:rel/],
  [['--from', 'FROM', '--command', 'x', '--grade-in', 'clean'], /--grade-in/],
  [['--from', 'FROM', '--command', 'x', '--timeout', 'agnet=5m'], /--timeout/],
  [['--from', 'FROM', '--command', 'x', '--timeout', 'long'], /--timeout/],
  [['--from', 'FROM', '--command', 'x', '--file', '/a=nothere'], /nothere/],
  [['--from', 'FROM', '--command', 'x', '--file', '/a'], /--file PATH=FILE/],
  [['--from', 'FROM', '--command', 'x', '--file', 'b/a.py=a.py'], /--file \/a\.py=a\.py/],
])('%j says what is missing or wrong', async (argv, wrong) => {
  const file = await fileOf([{ id: 'a' }])
  const end = await start([file, ...argv.map((word) => (word === 'FROM' ? from : word))])
  expect(end.stderr).toMatch(wrong)
  expect([1, 2]).toContain(end.code)
})

test('who leaves before the run is there is no fault of anybody', async () => {
  const file = await fileOf([{ id: 'a' }])
  const asked = Promise.withResolvers<void>()
  // A daemon that never answers.
  const server = createServer(() => asked.resolve()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const child = startCommand(['runs', 'start', file, '--from', from, '--command', 'x'], {
    SANDLOT_URL: `http://127.0.0.1:${port}`,
    SANDLOT_API_KEY: 'sk_x',
  })
  let said = ''
  child.stderr.on('data', (bytes) => {
    said += bytes
  })
  const ended = once(child, 'close')
  await asked.promise
  child.kill('SIGINT')
  expect(await ended).toEqual([130, null])
  expect(said).not.toContain('fault')
  server.closeAllConnections()
  server.close()
})
