import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { temporaryDirectory } from '@sandlot/testkit'
import { FunctionError, type FunctionOptions, Image, type QueueRow } from 'sandlot'
import { expect, test } from 'vitest'
import type * as handlers from './harness/handlers.ts'
import { story } from './harness/story.ts'
import { until } from './harness/until.ts'

type Handlers = typeof handlers

await story('functions and queues', { pool: 2 }, (given) => {
  const url = new URL('./harness/handlers.ts', import.meta.url)
  const fn = <Name extends keyof Handlers & string>(
    name: Name,
    options: Omit<FunctionOptions<Name>, 'export'> = {},
  ) => given.client.fn<Handlers, Name>(url, { ...options, export: name })

  /** Sandboxes of functions that live. */
  const containers = async () => {
    const all = await Array.fromAsync(given.client.sandboxes.list())
    return all.filter(({ owner, state }) => owner === 'function' && state === 'running')
  }

  test('a function runs in a container, prints to its caller, and throws as it did there', async () => {
    const lines: string[] = []
    const add = fn('add', { onPrint: ({ label, text }) => lines.push(`${label}: ${text}`) })
    expect(await add.remote({ a: 40, b: 2 })).toBe(42)
    expect(lines).toEqual(['handlers.ts#add: adds 40 and 2'])
    const call = await add.spawn({ a: 1, b: 2 })
    expect(await given.daemon.client().call(call.id).result()).toBe(3)
    const error = await fn('explode')
      .remote('text')
      .catch((thrown) => thrown)
    expect(error).toBeInstanceOf(FunctionError)
    expect(error).toMatchObject({ name: 'RangeError', message: 'no good: text' })
    const source = (await readFile(url, 'utf8')).split('\n')
    const line = source.findIndex((text) => text.includes('throw new RangeError')) + 1
    expect(error.stack).toContain(`at explode (${fileURLToPath(url)}:${line}:`)
  })

  test('many inputs go through a few containers, in their order where that is asked for', async () => {
    const square = fn('square', { concurrency: 8, containers: 2 })
    const inputs = Array.from({ length: 300 }, (_, n) => n)
    const rows = await Array.fromAsync(square.map(inputs, { ordered: true }))
    expect(rows).toEqual(inputs.map((n) => ({ index: n, ok: true, value: n * n })))
    expect((await containers()).length).toBeLessThanOrEqual(4)
  })

  test('one that closes its stdin is told of at once, and one that only destroys it answers on', async () => {
    const meddle = fn('meddle', { timeout: '10m' })
    expect([await meddle.remote('destroy'), await meddle.remote('destroy')]).toEqual(
      Array(2).fill('destroy'),
    )
    await expect(meddle.remote('close')).rejects.toMatchObject({
      code: 'function_exited',
      message: expect.stringContaining('closed its stdin'),
    })
  })

  test('it starts from any image with glibc, and one without is refused', async () => {
    const python = fn('python', { from: given.image })
    expect(await python.remote('print(6 * 7)')).toBe('42')
    await using directory = await temporaryDirectory()
    await mkdir(join(directory.path, 'lib'))
    await writeFile(join(directory.path, 'lib/ld-musl-x86_64.so.1'), '')
    const release = fn('release', { from: Image.directory(directory.path) })
    await expect(release.remote()).rejects.toMatchObject({
      code: 'function_invalid',
      message: expect.stringContaining('musl'),
    })
  })

  test('a call whose container is lost is lost, or begun again where that is asked for', async () => {
    for (const infra of [0, 1]) {
      const before = new Set((await containers()).map(({ id }) => id))
      const result = fn('second', { retry: { infra } })
        .remote('done')
        .catch((error) => error.code)
      const { id, tags } = await until('a container', async () =>
        (await containers()).find((each) => !before.has(each.id)),
      )
      const queue = given.client.queue(tags.queue ?? '')
      await until(`an input in it (${infra})`, async () => (await queue.view()).tasks.running === 1)
      await given.daemon.killSandbox(id)
      expect(await result).toBe(infra === 0 ? 'function_lost' : 'done')
    }
  })

  test('a queue loses and doubles nothing when its daemon is killed, and keeps what always fails', async () => {
    const flaky = fn('flaky')
    const queue = given.client.queue('numbers', flaky, {
      autoscale: { maxContainers: 2, tasksPerContainer: 4, idle: '1s' },
      retry: { error: 1, infra: 5, backoff: '100ms' },
    })
    const numbers = Array.from({ length: 120 }, (_, n) => n)
    expect(await queue.putMany(numbers, { key: (n) => `n-${n}` })).toEqual({
      added: 120,
      known: 0,
    })
    const rows: QueueRow<number>[] = []
    let killed = false
    for await (const row of queue.results({ until: 'empty' })) {
      rows.push(row)
      if (killed || rows.length < 30) continue
      killed = true
      await given.daemon.kill()
      await given.daemon.start()
    }
    expect(rows.map(({ key }) => key).sort()).toEqual(numbers.map((n) => `n-${n}`).sort())
    const failed = rows.filter(({ ok }) => !ok).map(({ key }) => key)
    expect(failed.sort()).toEqual(
      numbers
        .filter((n) => n % 10 === 3)
        .map((n) => `n-${n}`)
        .sort(),
    )
    const dead = await Array.fromAsync(queue.deadLetters())
    expect(dead.map(({ input }) => input).sort((a, b) => a - b)).toEqual(
      numbers.filter((n) => n % 10 === 3),
    )
    expect(dead[0]?.error.message).toMatch(/can't do \d*3/)
    await until('the end of idle containers', async () => {
      const { ready, starting } = (await queue.view()).containers
      return ready + starting === 0
    })
    await queue.delete()
  })
})
