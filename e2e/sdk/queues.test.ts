/** Queues by the SDK and `sandlot queues …`, against a daemon on sandboxes in memory: no function works on them here. */
import { SandlotError } from 'sandlot'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runCommand } from '../harness/command.ts'
import { type FakeDaemon, startFakeDaemon } from './fake-daemon.ts'

let daemon: FakeDaemon
beforeAll(async () => {
  daemon = await startFakeDaemon()
})
afterAll(async () => await daemon[Symbol.asyncDispose]())

function sandlot(...argv: string[]) {
  const { url, apiKey } = daemon
  return runCommand(argv, { environment: { SANDLOT_URL: url, SANDLOT_API_KEY: apiKey } })
}

test('tasks of a queue wait for a function, and outlive their daemon', async () => {
  const queue = daemon.client().queue<{ n: number }, number>('waiting')
  expect(await queue.put({ n: 1 }, { key: 'first' })).toMatchObject({ duplicate: false })
  expect(await queue.put({ n: 2 }, { key: 'first' })).toMatchObject({ duplicate: true })
  const many = Array.from({ length: 2_500 }, (_, n) => ({ n }))
  expect(await queue.putMany(many)).toEqual({ added: 2_500, known: 0 })
  await queue.put({ n: 3 }, { delay: '1h', priority: 4 })
  await queue.put({ n: 4, text: 'x'.repeat(100_000) } as { n: number })
  await daemon.restart()
  const view = await daemon.client().queue('waiting').view()
  expect(view.tasks).toEqual({ ready: 2_502, delayed: 1, running: 0, dead: 0 })
  expect(view).toMatchObject({ kind: 'tasks', function: null, trouble: null })
})

test('of many tasks it is told how many are new, and each may have options of its own', async () => {
  const queue = daemon.client().queue<number>('many')
  const key = (n: number) => `n-${n}`
  expect(await queue.putMany([1, 2], { key })).toEqual({ added: 2, known: 0 })
  const more = { key, delay: (n: number) => (n > 3 ? '1h' : 0), priority: (n: number) => n }
  expect(await queue.putMany([2, 3, 4, 5], more)).toEqual({ added: 3, known: 1 })
  expect(await queue.putMany([6], { key, delay: '1h' })).toEqual({ added: 1, known: 0 })
  expect((await queue.view()).tasks).toMatchObject({ ready: 3, delayed: 3 })
})

test('what can’t be a task is refused before anything is sent', async () => {
  const queue = daemon.client().queue('refused')
  const refused = [
    [() => queue.put(() => 1), 'the task is a function'],
    [() => queue.putMany([{ a: [1, new Date()] }]), 'task 0.a[1] is of class Date'],
    [() => queue.put(1, { key: '' }), 'key'],
    [() => queue.put(1, { delay: '31d' }), 'longer than 30 days'],
    [() => queue.put(1, { priority: 1.5 }), 'priority'],
    [() => queue.put(1, { prio: 1 } as never), 'there is no option "prio"'],
    [() => daemon.client().queue('no/name').put(1), 'is not a name for a queue'],
    [
      () =>
        daemon
          .client()
          .queue('q', undefined, { autoscale: { minContainers: 3, maxContainers: 2 } })
          .open(),
      'minContainers is more than maxContainers',
    ],
  ] as const
  for (const [ask, message] of refused) {
    const error = await ask().catch((thrown) => thrown)
    expect(error).toBeInstanceOf(SandlotError)
    expect(error).toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining(message),
    })
  }
  expect(() => daemon.client().call('nonsense')).toThrow('is not the id of a call')
  const gone = daemon.client().call('gone/group/1')
  await expect(gone.result()).rejects.toMatchObject({ code: 'queue_unknown' })
})

test('queues are listed, shown and deleted from the command line', async () => {
  await daemon.client().queue('seen').put({ a: 1 })
  const { stdout } = await sandlot('queues', 'list')
  expect(stdout).toMatch(/^seen +1 +0 +0 +0 +0 of 8/m)
  const shown = JSON.parse((await sandlot('queues', 'show', 'seen')).stdout)
  expect(shown).toMatchObject({ name: 'seen', tasks: { ready: 1 } })
  expect((await sandlot('queues', 'dead', 'seen')).stderr).toContain('no dead letters')
  expect((await sandlot('queues', 'replay', 'seen')).stderr).toContain('put back 0 tasks')
  expect((await sandlot('queues', 'delete', 'seen')).stderr).toContain('deleted seen')
  for (const verb of ['show', 'dead', 'replay', 'delete']) {
    const end = await sandlot('queues', verb, 'seen')
    expect(end).toMatchObject({ code: 2, stderr: expect.stringContaining('no queue "seen"') })
  }
})

test('reading a queue that nobody has made says so, and makes none', async () => {
  const queue = daemon.client().queue('scroes')
  const unknown = { code: 'queue_unknown', message: expect.stringContaining('"scroes"') }
  await expect(Array.fromAsync(queue.results({ until: 'empty' }))).rejects.toMatchObject(unknown)
  await expect(Array.fromAsync(queue.deadLetters())).rejects.toMatchObject(unknown)
  await expect(queue.replay()).rejects.toMatchObject(unknown)
  await expect(queue.view()).rejects.toMatchObject(unknown)
  await queue.put(1)
  expect((await daemon.client().queue('scroes').view()).tasks.ready).toBe(1)
})
