import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { Digest } from '../blobs.ts'
import type { Engine } from '../engine.ts'
import { bytes, expectCode, type MakeEngine, text } from './engine-under-test.ts'
import type { FakeClock } from './fake-clock.ts'

/** One call to one primitive, written so that doing it again after a crash changes nothing. */
interface Step {
  readonly name: string
  run(engine: Engine): Promise<unknown>
}

const task = bytes('the task')
const digest: Digest = `sha256:${createHash('sha256').update(task).digest('hex')}`
const LEASE_MS = 1000

/** The path of one episode through all primitives, each step after the one before. */
const STEPS: readonly Step[] = [
  { name: 'blob', run: ({ blobs }) => blobs.put(task, { pin: 'run/1' }) },
  { name: 'claim', run: ({ kv }) => putAbsent(kv, 'run/1/owner') },
  {
    name: 'event',
    run: ({ log }) => log.append('events', [bytes('admitted')], { dedup: ['admitted'] }),
  },
  {
    name: 'enqueue',
    run: ({ queue }) => queue.put('tasks', bytes('episode'), { dedup: 'episode' }),
  },
  { name: 'lease', run: leaseAndNote },
  { name: 'result', run: ({ log }) => log.append('results', [bytes('1')], { dedup: ['episode'] }) },
  { name: 'ack', run: ackNoted },
  { name: 'unpin', run: ({ blobs }) => blobs.unpin('run/1') },
  { name: 'release', run: ({ kv }) => kv.put('run/1/owner', bytes('released')) },
]

/** What every engine must hold over a crash between two primitives, or in the middle of one. */
export function describeCrashes(makeEngine: MakeEngine): void {
  describe('a crash between any two primitives', () => {
    test.each(STEPS.map(({ name }, index) => [name, index] as const))(
      'after %s: all before holds, nothing after, and the whole again ends the same',
      async (_name, index) => {
        await using subject = await makeEngine()
        for (const step of STEPS.slice(0, index + 1)) await step.run(subject.engine)
        const before = await look(subject.engine)
        const engine = await subject.crash()
        expect(await look(engine)).toEqual(before)
        await finish(engine, subject.clock)
      },
    )

    test.each(STEPS.map(({ name }, index) => [name, index] as const))(
      'during %s: it happened or not, and the whole again ends the same',
      async (_name, index) => {
        await using subject = await makeEngine()
        for (const step of STEPS.slice(0, index)) await step.run(subject.engine)
        const flying = STEPS[index]?.run(subject.engine).catch(() => {})
        const engine = await subject.crash()
        await flying
        await finish(engine, subject.clock)
      },
    )
  })
}

async function finish(engine: Engine, clock: FakeClock): Promise<void> {
  // A lease that nobody wrote down before the crash runs out.
  clock.advance(LEASE_MS)
  for (const step of STEPS) await step.run(engine)
  expect(await look(engine)).toMatchObject({
    events: ['admitted'],
    results: ['1'],
    depth: { ready: 0, delayed: 0, leased: 0 },
    owner: 'released',
    pins: [],
    blob: true,
  })
}

async function look({ log, queue, kv, blobs }: Engine) {
  const records = async (stream: string) => (await log.read(stream)).map((r) => text(r.bytes))
  const owner = await kv.get('run/1/owner')
  return {
    blob: (await blobs.has(digest)) !== undefined,
    pins: (await blobs.pins('')).pins.map(({ name }) => name),
    owner: owner && text(owner.value),
    events: await records('events'),
    results: await records('results'),
    depth: await queue.depth('tasks'),
    lease: text((await kv.get('lease'))?.value ?? bytes('')),
  }
}

async function putAbsent(kv: Engine['kv'], key: string): Promise<void> {
  await kv.put(key, bytes('mine'), { expect: 'absent' }).catch(async (error) => {
    await expectCode(Promise.reject(error), 'kv_conflict')
  })
}

/** The lease is written down, so that the one who comes after a crash holds it too. */
async function leaseAndNote({ queue, kv }: Engine): Promise<void> {
  const [lease] = await queue.lease('tasks', { max: 1, leaseMs: LEASE_MS })
  if (lease === undefined) return
  const { id, token } = lease
  await kv.put('lease', bytes(JSON.stringify({ queue: 'tasks', id, token })))
}

async function ackNoted({ queue, kv }: Engine): Promise<void> {
  const noted = await kv.get('lease')
  if (noted === undefined) return
  await queue.ack(JSON.parse(text(noted.value))).catch(async (error) => {
    await expectCode(Promise.reject(error), 'lease_lost')
  })
}
