import { type QueueResult, type QueueResultsPage, SandlotError } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import type { ClientContext } from '../connection/context.ts'
import { Calls } from './calls.ts'

const refusal = (code: 'queue_unknown' | 'invalid_request') =>
  Promise.reject(new SandlotError(code, 'no'))

/** A daemon whose calls end at once, with what they were given; its results can be made to begin anew. */
class Daemon {
  isThere = true
  readonly cursors: (string | undefined)[] = []
  made = 0
  #results: QueueResult[] = []
  #tasks = 0

  forget(): void {
    this.#results = []
  }

  readonly context = {
    http: { json: (route: string, options: object) => this.#answer(route, options) },
  } as unknown as ClientContext

  make(): string {
    this.isThere = true
    this.made += 1
    return 'fn'
  }

  async #answer(route: string, { json, query }: { json?: object; query?: { after?: string } }) {
    await Promise.resolve()
    if (!this.isThere) return await refusal('queue_unknown')
    if (route === 'putQueueTasks') {
      const { tasks } = json as { tasks: { json: string }[] }
      return { tasks: tasks.map((each) => ({ task: this.#end(each.json) })) }
    }
    return await this.#page(query?.after)
  }

  #end(json: string): string {
    const task = `t${this.#tasks++}`
    const cursor = String(this.#results.length + 1)
    this.#results.push({ task, cursor, json, error: null, blob: null } as QueueResult)
    return task
  }

  async #page(after: string | undefined): Promise<QueueResultsPage> {
    this.cursors.push(after)
    // Nobody waits for long here.
    await new Promise((resolve) => setTimeout(resolve, 1))
    if (after !== undefined && Number(after) > this.#results.length) {
      return await refusal('invalid_request')
    }
    const results = this.#results.slice(Number(after ?? 0))
    return { results, cursor: results.at(-1)?.cursor ?? after ?? '', logs: [], logsNext: 0 }
  }
}

function callsOf(daemon: Daemon): Calls {
  return new Calls(daemon.context, {
    queue: async (again) => (again || daemon.made === 0 ? daemon.make() : 'fn'),
    onLog: () => {},
    closing: new AbortController().signal,
  })
}

test.each([
  [
    'with its queue',
    (daemon: Daemon) => {
      daemon.isThere = false
      daemon.forget()
    },
  ],
  ['by their age', (daemon: Daemon) => daemon.forget()],
])('a process whose results were removed %s calls on', async (_, remove) => {
  const daemon = new Daemon()
  const calls = callsOf(daemon)
  for (const json of ['1', '2', '3']) expect(await calls.call({ json })).toMatchObject({ json })
  remove(daemon)
  expect(await calls.call({ json: '4' })).toMatchObject({ json: '4' })
  expect(await calls.call({ json: '5' })).toMatchObject({ json: '5' })
})

test('a refusal that the cursor has no part in is told', async () => {
  const daemon = new Daemon()
  const calls = callsOf(daemon)
  const { http } = daemon.context
  const answer = http.json.bind(http)
  http.json = ((route: string, options: object) =>
    route === 'getQueueResults'
      ? refusal('invalid_request')
      : answer(route as never, options)) as never
  await expect(calls.call({ json: '1' })).rejects.toMatchObject({ code: 'invalid_request' })
})
