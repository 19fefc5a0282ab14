import { open, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { bytes, expectCode } from '../conformance/engine-under-test.ts'
import { BACKLOG_OPERATIONS_MAX } from '../limits.ts'
import { openSqliteEngine } from './open.ts'
import { temporaryDirectory } from './under-test.ts'

test('refuses calls beyond the backlog, carries out the rest, and goes on', async () => {
  await using place = await temporaryDirectory()
  await using engine = await openSqliteEngine({ directory: place.path })
  const controller = new AbortController()
  const { signal } = controller
  const reason = new Error('withdrawn')
  const first = engine.kv.put('a', bytes('1'))
  const withdrawn = Array.from({ length: BACKLOG_OPERATIONS_MAX - 1 }, () =>
    engine.kv.get('a', { signal }).catch((error) => error),
  )
  await expectCode(engine.kv.put('b', bytes('1')), 'backlog_full')
  controller.abort(reason)
  const outcomes = await Promise.all(withdrawn)
  // The engine's own first sweeps may still have been in the backlog.
  expect(outcomes.filter((outcome) => outcome !== reason).length).toBeLessThan(5)
  await first
  await engine.kv.put('c', bytes('1'))
  expect((await engine.kv.list('')).entries.map(({ key }) => key)).toEqual(['a', 'c'])
})

test('refuses everything after it met a damaged database', async () => {
  await using place = await temporaryDirectory()
  {
    await using engine = await openSqliteEngine({ directory: place.path, durability: 'power' })
    for (let n = 0; n < 50; n++) await engine.log.append('s', [new Uint8Array(20_000).fill(n)])
  }
  await damage(join(place.path, 'engine.db'))
  await using engine = await openSqliteEngine({ directory: place.path })
  await expectCode(readAll(), 'storage_failed')
  await expectCode(engine.kv.put('a', bytes('1')), 'storage_failed')
  await expectCode(engine.log.head('s'), 'storage_failed')

  async function readAll(): Promise<void> {
    await engine.log.read('s')
    await engine.kv.list('')
    await engine.queue.depth('q')
  }
})

test('waits for the calls under way when it is closed, and closing twice is fine', async () => {
  await using place = await temporaryDirectory()
  const engine = await openSqliteEngine({ directory: place.path })
  const calls = Array.from({ length: 200 }, (_, n) => engine.log.append('s', [bytes(`${n}`)]))
  await Promise.all([engine[Symbol.asyncDispose](), engine[Symbol.asyncDispose]()])
  await Promise.all(calls)
  await engine[Symbol.asyncDispose]()
  await expectCode(engine.log.head('s'), 'closed')
  await using again = await openSqliteEngine({ directory: place.path })
  expect(await again.log.read('s')).toHaveLength(200)
})

/** Overwrites all but the first pages, which hold the schema. */
async function damage(file: string): Promise<void> {
  const { size } = await stat(file)
  await using handle = await open(file, 'r+')
  const from = 32 * 4096
  await handle.write(new Uint8Array(size - from).fill(0xa5), 0, size - from, from)
}
