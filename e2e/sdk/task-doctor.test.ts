/** Tasks whose worth is found out, and what a run doesn't run of them, against a daemon on sandboxes in memory. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { FakeScript } from '@sandlot/runtime'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type CommandEnd, runCommand } from '../harness/command.ts'
import { type FakeDaemon, startFakeDaemon } from './fake-daemon.ts'

/** `write TEXT` answers; `check` compares with what the task wants; scripts of task folders do what their texts say. */
const script: FakeScript = ({ argv, env, files }) => {
  const text = (path: string) => Buffer.from(files.bytes(path) ?? '').toString()
  const [, , command = '', , path = ''] = argv
  const [verb, word] = (path === '' ? command : text(path)).trim().split(' ')
  switch (verb) {
    case 'write':
      files.put('/answer', word ?? '')
      return {}
    case 'check': {
      const { wants } = JSON.parse(text(env.SANDLOT_TASK_FILE ?? '') || '{}')
      return { stdout: JSON.stringify({ reward: text('/answer') === wants ? 1 : 0 }) }
    }
    case 'reward':
      files.put('/logs/verifier/reward.txt', text('/answer') === word ? '1' : '0')
      return {}
    case ':':
      return {}
    case 'missing':
      return { exitCode: 127, stderr: 'missing: not found' }
    default:
      return { exitCode: 1, stderr: `${argv.join(' ')}: not known` }
  }
}

let daemon: FakeDaemon
let directory: string
let from: string
beforeAll(async () => {
  daemon = await startFakeDaemon({ script })
  from = (await daemon.image()).id
  directory = await mkdtemp(join(tmpdir(), 'sandlot-doctor-'))
})
afterAll(async () => {
  await daemon[Symbol.asyncDispose]()
  await rm(directory, { recursive: true })
})

function sandlot(...argv: readonly string[]): Promise<CommandEnd> {
  const { url, apiKey } = daemon
  return runCommand(argv, { environment: { SANDLOT_URL: url, SANDLOT_API_KEY: apiKey } })
}

async function put(name: string, text: string): Promise<string> {
  const path = join(directory, name)
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, text)
  return path
}

const lines = (tasks: readonly object[]) =>
  tasks.map((task) => `${JSON.stringify(task)}\n`).join('')
const CHECKED = ['--grade', 'check', '--reward', 'stdout']

const good = { id: 'good', wants: '42', sandlot: { gold: 'write 42' } }
const broken = { id: 'broken', wants: '42', sandlot: { gold: 'write 41' } }
const free = { id: 'free', wants: '42', sandlot: { gold: 'write 42', null: 'write 42' } }

describe('tasks of a file', () => {
  test('are examined by their own commands, and those that are no good are not run', async () => {
    const file = await put(
      'tasks.jsonl',
      lines([good, broken, free, { id: 'unproven', wants: 'x' }]),
    )
    const list = join(directory, 'list.json')
    const examine = ['doctor', 'tasks', file, '--times', '2', '--from', from, ...CHECKED]
    const end = await sandlot(...examine, '--write', list)
    expect(end.code).toBe(1)
    const words = end.stdout.split('\n').map((line) => line.split(/ {2,}/).slice(0, 4))
    expect(words.slice(1, 5)).toEqual([
      ['broken', 'broken', '0/2', '0/2'],
      ['free', 'free', '2/2', '2/2'],
      ['unproven', 'unproven', '-', '0/2'],
      ['sound', 'good', '2/2', '0/2'],
    ])
    expect(end.stderr).toContain(`2 tasks are in quarantine: ${list}`)

    await put('tasks.jsonl', lines([good, broken, { ...free, mended: true }]))
    const name = 'held-back'
    const start = ['runs', 'start', file, '--from', from, ...CHECKED, '--command', 'write 42']
    const started = await sandlot(...start, '--name', name, '--quarantine', list, '--watch')
    expect(started.stderr).toContain(`not run, as ${list} says: broken (broken)`)
    expect(started.stderr).toContain(`free is in ${list}, and another one since: it is run`)
    const rows = await (await daemon.client().rollouts.get(name)).wait()
    expect(rows.map(({ key, outcome, reward }) => [key, outcome, reward]).sort()).toEqual([
      ['broken', 'task_invalid', null],
      ['free', 'graded', 1],
      ['good', 'graded', 1],
    ])
    expect(rows.find(({ key }) => key === 'broken')).toMatchObject({
      ...{
        valid: false,
        sandbox: null,
        cause: [expect.stringMatching(/^in quarantine: broken: /)],
      },
    })
    await put('tasks.jsonl', lines([broken]))
    const none = await sandlot(...start, '--quarantine', list)
    expect(none).toMatchObject({ code: 2, stdout: '' })
    expect(none.stderr).toContain(`all tasks are in quarantine by ${list}`)
  })

  test('are all examined, also where so many fail that a run would wait for a person', async () => {
    const tasks = Array.from({ length: 60 }, (_, n) => ({
      ...{ id: `t${n}`, wants: 'x', sandlot: { gold: 'missing' } },
    }))
    const file = await put('many.jsonl', lines(tasks))
    const examine = ['doctor', 'tasks', file, '--times', '1', '--from', from, ...CHECKED]
    const end = await sandlot(...examine, '--json')
    expect(end.code).toBe(1)
    const { tasks: found } = JSON.parse(end.stdout)
    expect(found).toHaveLength(60)
    for (const { findings } of found) {
      expect(findings).toMatchObject([
        { condition: 'broken', why: expect.stringMatching(/episode_error: .*missing: not found/) },
      ])
    }
  })

  test('that say what is no command are refused with their line', async () => {
    const file = await put('wrong.jsonl', lines([good, { id: 'b', sandlot: { gold: 7 } }]))
    const end = await sandlot('doctor', 'tasks', file, '--from', from)
    expect(end).toMatchObject({ code: 2, stdout: '' })
    expect(end.stderr).toContain('wrong.jsonl, line 2: sandlot.gold is no command')
  })
})

describe('task folders', () => {
  const folder = (files: Record<string, string> = {}) => ({
    'task.toml': 'version = "1.0"\n',
    'instruction.md': 'Answer.\n',
    'environment/Dockerfile': `FROM ${from}\n`,
    'tests/test.sh': 'reward 42\n',
    'solution/solve.sh': 'write 42\n',
    ...files,
  })
  async function folders(top: string, tasks: Record<string, Record<string, string>>) {
    for (const [name, files] of Object.entries(tasks)) {
      for (const [path, text] of Object.entries(files)) await put(join(top, name, path), text)
    }
    return join(directory, top)
  }

  test('are run by their solutions, by nobody and by a command, without those in quarantine', async () => {
    const path = await folders('set', {
      good: folder(),
      bad: folder({ 'solution/solve.sh': 'write 41\n' }),
    })
    const list = join(directory, 'folders.json')
    const end = await sandlot('doctor', 'tasks', path, '--times', '1', '--json', '--write', list)
    expect(end.code).toBe(1)
    expect(JSON.parse(await readFile(list, 'utf8')).tasks).toMatchObject([
      { key: 'bad', condition: 'broken' },
    ])
    const rewards = async (...argv: string[]) => {
      const started = await sandlot('runs', 'start', '--harbor', path, ...argv, '--detach')
      expect(started.code).toBe(0)
      const rows = await (await daemon.client().rollouts.get(started.stdout.trim())).wait()
      return Object.fromEntries(rows.map(({ key, reward }) => [key, reward]))
    }
    expect(await rewards('--agent', 'oracle')).toEqual({ good: 1, bad: 0 })
    expect(await rewards('--agent', 'nop')).toEqual({ good: 0, bad: 0 })
    expect(await rewards('--agent', 'write 42')).toEqual({ good: 1, bad: 1 })
    const held = await rewards('--agent', 'oracle', '--quarantine', list)
    expect(held).toEqual({ good: 1, bad: null })
  })

  test.each([
    [['--agent', 'oracle'], 'there are no tasks'],
    [['tasks.jsonl', '--agent', 'oracle'], '--agent is for --harbor'],
    [['--harbor', '.'], 'nobody does the tasks'],
    [['tasks.jsonl', '--harbor', '.', '--agent', 'nop'], 'both tasks.jsonl and --harbor .'],
    [
      ['--harbor', '.', '--agent', 'nop', '--grade', 'x'],
      '--grade has no place beside task folders',
    ],
    [['--harbor', 'FOLDER', '--agent', 'nop', '--grade-in', 'clean'], '--grade-in clean has no'],
    [['--harbor', '/nothing', '--agent', 'nop'], 'cannot read /nothing'],
  ])('runs start %j: %s', async (argv, message) => {
    await folders('one', { good: folder() })
    const named = argv.map((each) => (each === 'FOLDER' ? join(directory, 'one') : each))
    const end = await sandlot('runs', 'start', ...named)
    expect(end).toMatchObject({ code: 2, stdout: '' })
    expect(end.stderr).toContain(message)
    expect(end.stderr).toMatch(/hint: +\S/)
  })

  test('say for themselves how they are graded', async () => {
    const end = await sandlot('doctor', 'tasks', directory, '--reward', 'stdout')
    expect(end).toMatchObject({ code: 2, stdout: '' })
    expect(end.stderr).toContain('--reward has no place beside task folders')
  })

  test('of which one can’t be built start nothing, and are named', async () => {
    const path = await folders('unbuilt', {
      good: folder(),
      bad: folder({ 'environment/Dockerfile': 'FROM im_aaaaaaaaaaaaaaaaaaaa\n' }),
    })
    const end = await sandlot('runs', 'start', '--harbor', path, '--agent', 'nop')
    expect(end).toMatchObject({ code: 2, stdout: '' })
    expect(end.stderr).toMatch(/images can not be built:\n {2}bad: .*im_aaaaaaaaaaaaaaaaaaaa/)
  })
})
