import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { expectCode, text } from '../conformance/engine-under-test.ts'
import type { Engine } from '../engine.ts'
import { openSqliteEngine } from './open.ts'

const ROUNDS = 20
const WRITERS = 8
const SEED = 20_260_101

let directory: string
const children: ChildProcess[] = []

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sandlot-engine-'))
})

afterEach(async () => {
  for (const child of children.splice(0)) await end(child)
  await rm(directory, { recursive: true })
})

test(`keeps every acknowledged record over ${ROUNDS} SIGKILLs, without gap or double (seed ${SEED})`, async () => {
  const random = generator(SEED)
  const acknowledged = new Map<number, number>()
  for (let round = 0; round < ROUNDS; round++) {
    await killAfter(Math.floor(random() ** 3 * 500), acknowledged)
    await using engine = await openSqliteEngine({ directory })
    for (let writer = 0; writer < WRITERS; writer++) {
      const numbers = await read(engine, `writer/${writer}`)
      expect(numbers).toEqual(numbers.map((_, index) => `${writer} ${index + 1}`))
      expect(numbers.length % 3).toBe(0)
      expect(numbers.length).toBeGreaterThanOrEqual(acknowledged.get(writer) ?? 0)
    }
    const shared = await read(engine, 'shared')
    expect(new Set(shared).size).toBe(shared.length)
    for (let writer = 0; writer < WRITERS; writer++) {
      const mine = shared.filter((key) => key.startsWith(`${writer} `))
      expect(mine).toEqual(mine.map((_, index) => `${writer} ${index + 1}`))
      expect(mine.length).toBeGreaterThanOrEqual(acknowledged.get(writer) ?? 0)
    }
  }
  expect([...acknowledged.values()].every((number) => number > 0)).toBe(true)
})

test('refuses a directory that another live process has, names it, and takes it over once that is dead', async () => {
  const { child, lines } = await startWriter()
  // It is open before it has written anything.
  await lines[Symbol.asyncIterator]().next()
  const details = await expectCode(openSqliteEngine({ directory }), 'directory_locked')
  expect(details).toEqual({ pid: child.pid })
  await expect(openSqliteEngine({ directory })).rejects.toThrow(`process ${child.pid} has`)
  await kill(child)
  await using engine = await openSqliteEngine({ directory })
  expect(await engine.log.head('shared')).toBeDefined()
  expect(await expectCode(openSqliteEngine({ directory }), 'directory_locked')).toEqual({
    pid: process.pid,
  })
})

/** Lets the writers work until that many appends were acknowledged, then kills them in the middle of the next. */
async function killAfter(appends: number, acknowledged: Map<number, number>): Promise<void> {
  const { child, lines } = await startWriter()
  let left = appends
  for await (const line of lines) {
    const [writer = 0, number = 0] = line.split(' ').map(Number)
    acknowledged.set(writer, number)
    // What it said before it died still counts, so the loop goes on to the end of its output.
    if (left-- === 0) child.kill('SIGKILL')
  }
  await kill(child)
}

async function startWriter() {
  const program = fileURLToPath(new URL('./fixtures/append-forever.ts', import.meta.url))
  const child = spawn(process.execPath, [program, directory, `${WRITERS}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {},
  })
  children.push(child)
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  expect((await lines.next()).value).toBe('open')
  return { child, lines: { [Symbol.asyncIterator]: () => lines } }
}

async function kill(child: ChildProcess): Promise<void> {
  await end(child)
  expect(child.signalCode).toBe('SIGKILL')
}

async function end(child: ChildProcess): Promise<void> {
  const alive = child.signalCode === null && child.exitCode === null
  const exited = alive ? once(child, 'exit') : undefined
  child.kill('SIGKILL')
  await exited
}

async function read(engine: Engine, stream: string): Promise<string[]> {
  const all: string[] = []
  let after: string | undefined
  for (;;) {
    const page = await engine.log.read(stream, after === undefined ? {} : { after })
    if (page.length === 0) return all
    all.push(...page.map((record) => text(record.bytes)))
    after = page.at(-1)?.position
  }
}

function generator(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
