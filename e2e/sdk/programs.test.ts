import { join } from 'node:path'
import type { FakeScript } from '@sandlot/runtime'
import { Image, type ResultRow } from 'sandlot'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type FakeDaemon, startFakeDaemon, until } from './fake-daemon.ts'

interface Task {
  readonly id: string
  readonly a: number
  readonly b: number
  readonly wrong?: boolean
}

/** Programs that wait here until they are let go on. */
const waiting = new Map<string, () => void>()

/** Adds what the task says, or not quite; the grader compares, and writes what it found. */
const script: FakeScript = async ({ argv, env, files }) => {
  const [name] = argv
  const text = (path: string) => Buffer.from(files.bytes(path) ?? '').toString()
  const { a, b, wrong }: Task = JSON.parse(text(env.SANDLOT_TASK_FILE ?? '') || '{}')
  if (name === 'solve') {
    files.put('/answer', String(a + b + (wrong ? 1 : 0)))
    files.put('/logs/reward.json', '{"reward": 1000}')
    return { stdout: `solved ${env.SANDLOT_KEY} with ${text('/hint') || 'no hint'}\n` }
  }
  if (name === 'check') {
    const right = text('/answer') === String(a + b)
    if (text('/logs/reward.json') !== '') return { exitCode: 1, stderr: 'it was there before' }
    files.put('/logs/reward.json', JSON.stringify({ reward: right ? 1 : 0 }))
    return { exitCode: right ? 0 : 1, stdout: 'checked\n' }
  }
  if (name === 'wait') {
    await new Promise<void>((resolve) => waiting.set(env.SANDLOT_KEY ?? '', resolve))
    return { stdout: '0.5' }
  }
  return { exitCode: 127, stderr: `${name}: not found` }
}

let daemon: FakeDaemon
beforeAll(async () => {
  daemon = await startFakeDaemon({ script })
})
afterAll(async () => daemon[Symbol.asyncDispose]())

const tasks: Task[] = [
  { id: 'right', a: 1, b: 2 },
  { id: 'wrong', a: 1, b: 2, wrong: true },
]
const check = { run: ['check'], reward: { file: '/logs/reward.json' } } as const

/** By a client that does nothing else. */
async function rowsOf(name: string): Promise<Map<string, ResultRow>> {
  const rows = await (await daemon.client().rollouts.get(name)).wait()
  return new Map(rows.map((row) => [row.key, row]))
}

describe('a run of programs', () => {
  test('goes on without its client, and is graded by files that its programs can’t forge', async () => {
    const client = daemon.client()
    const run = client.rollouts.program(tasks, {
      ...{ name: 'alone', from: await daemon.image(), command: ['solve'], grade: check },
      timeout: { agent: '1m' },
    })
    await run.submitted
    await client.close()
    const rows = await rowsOf('alone')
    expect(rows.get('right')).toMatchObject({ outcome: 'graded', reward: 1 })
    expect(rows.get('wrong')).toMatchObject({ outcome: 'graded', reward: 0 })
    expect(rows.get('right')?.data).toMatchObject({ exitCode: 0 })
    const again = await daemon.client().rollouts.get('alone')
    const said = await again.artifact(rows.get('right') as ResultRow, 'agent.stdout')
    expect(Buffer.from(said).toString()).toBe('solved right with no hint\n')
  })

  test('gives each task what it has of its own', async () => {
    const from = await daemon.image()
    const root = Image.tar(join(daemon.directory, 'root.tar'))
    const other = await daemon.client().images.build(root.env({ OTHER: 'image' }))
    const run = daemon.client().rollouts.program(tasks, {
      ...{ name: 'own', from, command: ['nothing'], grade: check },
      each: ({ id }) => ({
        command: ['solve'],
        ...(id === 'right' ? { from: other, files: { '/hint': 'help' } } : {}),
      }),
      content: ({ a, b }) => ({ a, b }),
    })
    await run.submitted
    const rows = await rowsOf('own')
    expect(rows.get('right')).toMatchObject({ reward: 1, from: other.digest })
    expect(rows.get('wrong')).toMatchObject({ reward: 1, from: from.digest })
    const said = await run.artifact(rows.get('right') as ResultRow, 'agent.stdout')
    expect(Buffer.from(said).toString()).toBe('solved right with help\n')
  })

  test('is taken up by the next daemon where it stands', async () => {
    const run = daemon.client().rollouts.program([{ id: 'long' }], {
      ...{ name: 'taken-up', from: await daemon.image(), command: ['wait'], reward: 'stdout' },
    })
    await run.submitted
    await until(() => waiting.has('long'))
    const letGo = waiting.get('long')
    waiting.clear()
    await daemon.restart()
    letGo?.()
    expect((await rowsOf('taken-up')).get('long')).toMatchObject({ reward: 0.5, attempt: 1 })
    expect(waiting.size).toBe(0)
  })

  test('says what is wrong before anything is begun', async () => {
    const from = await daemon.image()
    const { rollouts } = daemon.client()
    const program = (options: object, of: unknown[] = tasks) =>
      rollouts.program(of, { from, command: ['solve'], ...options }).submitted
    await expect(program({ reward: 'stdout', grade: check })).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('the run has a grader'),
    })
    await expect(program({ each: () => ({ form: from }) })).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('"form"'),
    })
    await expect(program({ each: () => ({ from: 'im_nothere' }) })).rejects.toMatchObject({
      code: 'image_unknown',
    })
    await expect(program({}, [])).rejects.toMatchObject({ code: 'invalid_request' })
  })
})

describe('a run of programs that stays open', () => {
  test('takes tasks while it goes on, of any process, and needs none of them to run', async () => {
    const first = daemon.client()
    const from = await daemon.image()
    const options = { from, grade: check, concurrency: 2 }
    const program = {
      command: ['nothing'],
      each: () => ({ command: ['solve'], files: { '/hint': 'help' } }),
    }
    const run = first.rollouts.open<Task>('open-programs', program, options)
    expect(await run.putMany(tasks)).toMatchObject({ keys: ['right', 'wrong'], added: 2 })
    await first.close()
    const again = daemon.client().rollouts.open<Task>('open-programs', program, options)
    expect(await again.put(tasks[0] as Task)).toEqual({ key: 'right', added: false })
    await again.put({ id: 'more', a: 2, b: 2 })
    const attached = await daemon.client().rollouts.attach<Task>('open-programs')
    await attached.close()
    const rows = await rowsOf('open-programs')
    expect([...rows.values()].map(({ key, reward }) => `${key} ${reward}`).sort()).toEqual([
      ...['more 1', 'right 1', 'wrong 0'],
    ])
    const said = await attached.artifact(rows.get('more') as ResultRow, 'agent.stdout')
    expect(Buffer.from(said).toString()).toBe('solved more with help\n')
  })

  test('has no place for a worker, and is told what is wrong with its program', async () => {
    const client = daemon.client()
    const from = await daemon.image()
    const run = client.rollouts.open('programs-only', { command: ['solve'] }, { from })
    await run.created
    await expect(client.rollouts.attach('programs-only', async () => {})).rejects.toMatchObject({
      ...{ code: 'invalid_request', message: expect.stringContaining('needs no episode') },
    })
    const other = client.rollouts.open('programs-only', { command: ['wait'] }, { from })
    await expect(other.put({ id: 'a' })).rejects.toMatchObject({ code: 'run_differs' })
    const wrong = client.rollouts.open('wrong', { command: [] }, { from })
    await expect(wrong.put({ id: 'a' })).rejects.toMatchObject({ code: 'invalid_request' })
    const neither = client.rollouts.open('neither', {} as never, { from } as never)
    await expect(neither.put({ id: 'a' })).rejects.toMatchObject({ message: /not a function/ })
    await run.cancel()
  })
})
