import { Sandlot } from 'sandlot'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { python } from './harness/shells.ts'
import { story } from './harness/story.ts'
import { until } from './harness/until.ts'
import { Wire } from './harness/wire.ts'

/** Numbered lines, so that one that is lost or comes twice is seen; after each so many it waits until it may go on. */
const ROUNDS = 6
const LINES = 1_000
const COUNT = python(`
import os, time
for n in range(${ROUNDS}):
    print('\\n'.join(str(n * ${LINES} + line) for line in range(${LINES})), flush=True)
    while not os.path.exists(f'/go{n}'): time.sleep(0.01)
`)

/** Writes down that it ran, waits until it may end, and says so. */
const ONCE = 'echo ran >>/ran; while [ ! -e /go ]; do sleep 0.05; done; echo over'

await story('a connection that drops', { pool: 1 }, (given) => {
  let wire: Wire
  let client: Sandlot
  beforeAll(async () => {
    wire = await Wire.to(given.daemon.url)
    client = new Sandlot({ url: wire.url, apiKey: given.daemon.apiKey })
  })
  afterAll(async () => {
    await client.close()
    await wire[Symbol.asyncDispose]()
  })

  /** The same sandbox by a connection that holds. */
  const create = async () => {
    const sandbox = await client.sandboxes.create({ from: given.image })
    const besides = await given.client.sandboxes.get(sandbox.id)
    const ran = async () => (await besides.exec('cat /ran || true')).stdout
    return { sandbox, besides, ran }
  }

  test('in the middle of a stream, loses and doubles no byte of it', async () => {
    const { sandbox, besides } = await create()
    const stream = sandbox.exec(COUNT, { stream: true })
    let seen = ''
    let round = 0
    for await (const { text } of stream) {
      seen += text
      if (!seen.endsWith(`\n${(round + 1) * LINES - 1}\n`)) continue
      wire.cut()
      await besides.files.write(`/go${round}`, '')
      round += 1
    }
    expect(await stream.result).toMatchObject({ exitCode: 0 })
    const lines = Array.from({ length: ROUNDS * LINES }, (_, n) => `${n}\n`)
    expect([round, seen === lines.join('')]).toEqual([ROUNDS, true])
    await sandbox.stop()
  })

  test('in the middle of a flood, counts what nobody kept meanwhile', async () => {
    const { sandbox } = await create()
    const stream = sandbox.exec('head -c 20000000 /dev/zero', { stream: true })
    let position = 0
    let cut = false
    for await (const { bytes, offset, droppedBytes } of stream) {
      expect(offset).toBe(position + droppedBytes)
      position = offset + bytes.length
      if (!cut) wire.cut()
      cut = true
    }
    expect(position).toBe(20_000_000)
    expect(await stream.result).toMatchObject({ exitCode: 0 })
    await sandbox.stop()
  })

  test('in the middle of a command, is made again, and the command ran once', async () => {
    const { sandbox, besides, ran } = await create()
    const running = sandbox.exec(ONCE)
    await until('it runs', async () => (await ran()) !== '')
    const before = wire.made
    wire.cut()
    await until('it is connected again', () => wire.made > before)
    wire.cut()
    await besides.files.write('/go', '')
    expect(await running).toMatchObject({ exitCode: 0, stdout: 'over\n' })
    expect(await ran()).toBe('ran\n')
    await sandbox.stop()
  })

  test('after the command, before its result, gives the result, and the command ran once', async () => {
    const { sandbox, besides, ran } = await create()
    await besides.files.write('/go', '')
    await sandbox.exec('true')
    wire.silence()
    const running = sandbox.exec(ONCE)
    await until('it has ended', async () => {
      // Looked at after it has begun: before, none runs either.
      if ((await ran()) === '') return false
      return (await besides.execs()).every((each) => !each.running)
    })
    wire.cut()
    expect(await running).toMatchObject({ exitCode: 0, stdout: 'over\n' })
    expect(await ran()).toBe('ran\n')
    await sandbox.stop()
  })

  test('in the middle of an episode, costs it nothing: one attempt, one result', async () => {
    await using run = client.rollouts.map(
      [{ id: 'one' }, { id: 'two' }],
      async ({ sandbox }) => {
        const running = sandbox.exec(ONCE)
        const besides = await given.client.sandboxes.get(sandbox.id)
        await until('it runs', () => besides.files.stat('/ran').catch(() => undefined))
        wire.cut()
        await besides.files.write('/go', '')
        await running
        const { stdout } = await sandbox.exec('wc -l </ran')
        return { data: stdout.trim() }
      },
      { from: given.image, grade: { run: async () => 1 } },
    )
    const rows = await run.wait()
    expect(rows.map(({ outcome, reward, data }) => [outcome, reward, data])).toEqual([
      ['graded', 1, '1'],
      ['graded', 1, '1'],
    ])
    expect(rows.flatMap(({ attempts }) => attempts.slice(0, -1))).toEqual([])
  })
})
