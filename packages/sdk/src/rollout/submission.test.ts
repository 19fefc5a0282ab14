import type { RunView, TaskPutInput } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import type { ClientContext } from '../connection/context.ts'
import { listNaming, submitTasks } from './submission.ts'
import { sourceOf } from './tasks.ts'

/** A daemon that does no episode: what it is given waits, until `queued` is set back. */
function fullDaemon() {
  const daemon = { queued: 0, looks: 0, most: 0 }
  const json = async (route: string, { json }: { json?: { tasks: TaskPutInput[] } }) => {
    if (route === 'putTasks') {
      const added = json?.tasks.length ?? 0
      daemon.queued += added
      daemon.most = Math.max(daemon.most, daemon.queued)
      return { added, known: 0 }
    }
    const counts = { queued: daemon.queued }
    daemon.looks++
    // By the next look it has done all of it.
    if (daemon.queued >= 50_000) daemon.queued = 0
    return { state: 'running', counts } as unknown as RunView
  }
  return { daemon, context: { http: { json } } as unknown as ClientContext }
}

const { signal } = new AbortController()

function* numbers(count: number) {
  for (let id = 0; id < count; id++) yield { id }
}

test('a source that may have no end is read no further than the queue has room', async () => {
  const { daemon, context } = fullDaemon()
  const tasks = sourceOf(numbers(120_000))
  const submitted = await submitTasks(context, { run: 'r', tasks, naming: listNaming({}), signal })
  expect(submitted).toEqual({ added: 120_000, known: 0 })
  expect(daemon.looks).toBeGreaterThan(10)
  expect(daemon.most).toBeLessThanOrEqual(61_000)
})

test('a list is put as a whole', async () => {
  const { daemon, context } = fullDaemon()
  const tasks = sourceOf([...numbers(70_000)])
  await submitTasks(context, { run: 'r', tasks, naming: listNaming({}), signal })
  expect([daemon.queued, daemon.looks]).toEqual([70_000, 0])
})

test('whoever waits for room can leave', async () => {
  const { daemon, context } = fullDaemon()
  const leaving = new AbortController()
  const json = context.http.json.bind(context.http)
  const full = (async (route: string, options: object) => {
    if (route === 'putTasks') return await json(route as never, options)
    leaving.abort(new Error('that is all'))
    return { state: 'running', counts: { queued: 50_000 } }
  }) as typeof json
  const tasks = sourceOf(numbers(20_000))
  const submission = { run: 'r', tasks, naming: listNaming({}), signal: leaving.signal }
  const submitted = submitTasks({ ...context, http: { json: full } } as never, submission as never)
  await expect(submitted).rejects.toThrow('that is all')
  expect(daemon.queued).toBe(10_000)
})
