import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { bytes, expectCode } from '../conformance/engine-under-test.ts'
import { FakeClock } from '../conformance/fake-clock.ts'
import { isEngineError } from '../error.ts'
import type { Log } from '../log.ts'
import { SqliteEngine } from './engine.ts'

const MIB = 1024 * 1024
const TMPFS = `size=${8 * MIB},mode=0700`

let directory: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'sandlot-engine-'))
})

afterEach(() => rmSync(directory, { recursive: true }))

const mountable = canMount()
if (!mountable) {
  process.stderr.write('skipped: a full tmpfs needs the right to mount (run as root)\n')
}

test('refuses what does not fit into the database, and loses nothing', async () => {
  await using engine = await open(directory, 2 * MIB)
  const stored = await fill(engine.log)
  expect(stored).toBeGreaterThan(10)
  await expectIntact(engine.log, stored)
  await expectCode(engine.queue.put('q', new Uint8Array(200_000)), 'disk_full')
  expect(await engine.queue.depth('q')).toEqual({ ready: 0, delayed: 0, leased: 0 })
  await engine.log.trim('s', (await engine.log.head('s')) ?? '')
  await engine.log.append('s', [new Uint8Array(100_000)])
})

test('lets what fits through beside what does not', async () => {
  await using engine = await open(directory, 2 * MIB)
  await fill(engine.log)
  const outcomes = await Promise.allSettled([
    engine.log.append('s', [new Uint8Array(200_000)]),
    engine.log.head('s'),
    engine.log.delete('s'),
    engine.kv.get('a'),
  ])
  expect(outcomes.map(({ status }) => status)).toEqual([
    'rejected',
    'fulfilled',
    'fulfilled',
    'fulfilled',
  ])
})

test.skipIf(!mountable)(
  'survives a full disk: typed errors, nothing lost, and on it goes',
  async () => {
    using _mounted = mount(directory)
    let engine = await open(directory)
    const stored = await fill(engine.log)
    expect(stored).toBeGreaterThan(10)
    await expectIntact(engine.log, stored)
    const source = Array.from({ length: 9 }, () => new Uint8Array(MIB).fill(stored))
    const stream = (async function* () {
      yield* source
    })()
    await expectCode(engine.blobs.put(stream), 'disk_full')
    expect(await readdir(join(directory, 'blobs', 'incoming'))).toEqual([])
    await engine.crash()
    engine = await open(directory)
    await expectIntact(engine.log, stored)
    await engine[Symbol.asyncDispose]()
  },
)

test.skipIf(!mountable)('overwrites many times what the disk holds', async () => {
  using _mounted = mount(directory)
  // Closing gives the pages their place in the database, which then need not grow.
  const first = await open(directory)
  await first.kv.put('often', new Uint8Array(60_000))
  await first.kv.put('other', new Uint8Array(60_000))
  await first[Symbol.asyncDispose]()
  await using engine = await open(directory)
  await engine.kv.delete('other')
  for (let n = 0; n < 600; n++) await engine.kv.put('often', new Uint8Array(60_000).fill(n))
  expect((await engine.kv.get('often'))?.value[0]).toBe(599 & 0xff)
})

test.skipIf(!mountable)('goes on by itself once somebody else has made room', async () => {
  using _mounted = mount(directory)
  const hog = join(directory, 'hog')
  await writeFile(hog, new Uint8Array(5 * MIB))
  await using engine = await open(directory)
  const stored = await fill(engine.log)
  await rm(hog)
  await engine.log.append('s', [bytes('again')])
  await expectIntact(engine.log, stored, 1)
})

function open(path: string, databaseBytesMax?: number): Promise<SqliteEngine> {
  return SqliteEngine.open({
    storage: {
      directory: path,
      durability: 'process',
      ...(databaseBytesMax !== undefined && { databaseBytesMax }),
    },
    clock: new FakeClock(),
    busFaults: undefined,
  })
}

/** Appends until the disk is full, eight writers at once. Returns how many records were acknowledged. */
async function fill(log: Log): Promise<number> {
  let stored = 0
  const writer = async () => {
    for (;;) {
      try {
        await log.append('s', [new Uint8Array(30_000).fill(1), new Uint8Array(30_000).fill(2)])
        stored += 2
      } catch (error) {
        if (isEngineError(error, 'disk_full')) return
        throw error
      }
    }
  }
  await Promise.all(Array.from({ length: 8 }, writer))
  return stored
}

/** Exactly the acknowledged pairs are there, each whole. */
async function expectIntact(log: Log, stored: number, more = 0): Promise<void> {
  const marks: (number | undefined)[] = []
  let after: string | undefined
  for (;;) {
    const page = await log.read('s', after === undefined ? {} : { after })
    if (page.length === 0) break
    marks.push(...page.map((record) => record.bytes[0]))
    after = page.at(-1)?.position
  }
  expect(marks).toHaveLength(stored + more)
  expect(marks.slice(0, stored)).toEqual(Array.from({ length: stored }, (_, n) => 1 + (n % 2)))
}

function canMount(): boolean {
  if (process.getuid?.() !== 0) return false
  const place = mkdtempSync(join(tmpdir(), 'sandlot-engine-'))
  try {
    if (spawnSync('mount', ['-t', 'tmpfs', '-o', TMPFS, 'tmpfs', place]).status !== 0) return false
    return spawnSync('umount', [place]).status === 0
  } finally {
    rmSync(place, { recursive: true })
  }
}

function mount(place: string): Disposable {
  const { status, stderr } = spawnSync('mount', ['-t', 'tmpfs', '-o', TMPFS, 'tmpfs', place])
  if (status !== 0) throw new Error(`mount failed: ${stderr}`)
  return { [Symbol.dispose]: () => spawnSync('umount', ['-l', place]) }
}
