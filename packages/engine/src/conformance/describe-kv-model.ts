import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Kv } from '../kv.ts'
import { bytes, expectCode, type MakeEngine, text } from './engine-under-test.ts'
import type { FakeClock } from './fake-clock.ts'

interface Entry {
  value: string
  revision: string
  expiresAtMs: number | undefined
}

type Expectation = 'present' | 'stale' | 'absent' | undefined

type Command =
  | { type: 'put'; key: string; value: string; ttlMs: number | undefined; expect: Expectation }
  | { type: 'delete'; key: string; expect: Exclude<Expectation, 'absent'> }
  | { type: 'list'; prefix: string; limit: number }
  | { type: 'advance'; ms: number }
  | { type: 'crash' }

const key = fc.constantFrom('a', 'a/1', 'a/2', 'a0', 'b', 'b/1')
const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 40,
    arbitrary: fc.record({
      type: fc.constant('put' as const),
      key,
      value: fc.string({ maxLength: 5 }),
      ttlMs: fc.constantFrom(undefined, 10, 50),
      expect: fc.constantFrom('present' as const, 'stale' as const, 'absent' as const, undefined),
    }),
  },
  {
    weight: 20,
    arbitrary: fc.record({
      type: fc.constant('delete' as const),
      key,
      expect: fc.constantFrom('present' as const, 'stale' as const, undefined),
    }),
  },
  {
    weight: 15,
    arbitrary: fc.record({
      type: fc.constant('list' as const),
      prefix: fc.constantFrom('', 'a', 'a/', 'b/1', 'c'),
      limit: fc.integer({ min: 1, max: 4 }),
    }),
  },
  {
    weight: 15,
    arbitrary: fc.record({
      type: fc.constant('advance' as const),
      ms: fc.constantFrom(5, 10, 50),
    }),
  },
  { weight: 1, arbitrary: fc.constant<Command>({ type: 'crash' }) },
)

/** A revision that no entry has any more. */
const STALE = '0000000000000001'

/** Any course of calls does what the model says. */
export function describeKvModel(makeEngine: MakeEngine): void {
  test('kv: behaves like its model, whatever the course of calls', async () => {
    await using subject = await makeEngine()
    await subject.engine.kv.put('z', bytes('uses up the first revision'))
    await subject.engine.kv.delete('z')
    let run = 0
    await fc.assert(
      fc.asyncProperty(fc.array(command, { maxLength: 60 }), async (commands) => {
        const course = new Course(`run${run++}.`, subject.clock)
        for (const step of commands) {
          if (step.type === 'crash') await subject.crash()
          else if (step.type === 'advance') subject.clock.advance(step.ms)
          else await course.step(subject.engine.kv, step)
        }
      }),
      { numRuns: 60 },
    )
  })
}

type Checked = Exclude<Command, { type: 'crash' | 'advance' }>

class Course {
  readonly #root: string
  readonly #clock: FakeClock
  readonly #entries = new Map<string, Entry>()
  #lastRevision = ''

  constructor(root: string, clock: FakeClock) {
    this.#root = root
    this.#clock = clock
  }

  async step(kv: Kv, step: Checked): Promise<void> {
    if (step.type === 'list') return this.#list(kv, step)
    const entry = this.#present(step.key)
    const expected =
      step.expect === 'present'
        ? (entry?.revision ?? STALE)
        : step.expect === 'stale'
          ? STALE
          : step.expect
    const refused =
      expected === 'absent'
        ? entry !== undefined
        : expected !== undefined && expected !== entry?.revision
    if (step.type === 'put') await this.#put(kv, step, expected, refused)
    else await this.#delete(kv, step.key, expected, refused)
    const found = await kv.get(this.#root + step.key)
    const must = this.#present(step.key)
    expect(found && text(found.value)).toBe(must?.value)
    expect(found?.revision).toBe(must?.revision)
    expect(found?.expiresAtMs).toBe(must?.expiresAtMs)
  }

  #present(name: string): Entry | undefined {
    const entry = this.#entries.get(name)
    if (entry?.expiresAtMs === undefined || entry.expiresAtMs > this.#clock.now()) return entry
    return undefined
  }

  async #put(
    kv: Kv,
    { key: name, value, ttlMs }: Extract<Command, { type: 'put' }>,
    expected: string | undefined,
    refused: boolean,
  ): Promise<void> {
    const call = kv.put(this.#root + name, bytes(value), {
      ...(ttlMs !== undefined && { ttlMs }),
      ...(expected !== undefined && { expect: expected }),
    })
    if (refused) {
      await expectCode(call, 'kv_conflict')
      return
    }
    const { revision } = await call
    expect(revision > this.#lastRevision).toBe(true)
    this.#lastRevision = revision
    const expiresAtMs = ttlMs === undefined ? undefined : this.#clock.now() + ttlMs
    this.#entries.set(name, { value, revision, expiresAtMs })
  }

  async #delete(
    kv: Kv,
    name: string,
    expected: string | undefined,
    refused: boolean,
  ): Promise<void> {
    const call = kv.delete(this.#root + name, expected === undefined ? {} : { expect: expected })
    if (refused) {
      await expectCode(call, 'kv_conflict')
      return
    }
    expect(await call).toBe(this.#present(name) !== undefined)
    this.#entries.delete(name)
  }

  async #list(kv: Kv, { prefix, limit }: Extract<Command, { type: 'list' }>): Promise<void> {
    const must = [...this.#entries.keys()]
      .filter((name) => name.startsWith(prefix) && this.#present(name))
      .sort()
      .map((name) => this.#root + name)
    const found: string[] = []
    let after: string | undefined
    do {
      const page = await kv.list(this.#root + prefix, {
        limit,
        ...(after !== undefined && { after }),
      })
      expect(page.entries.length).toBeLessThanOrEqual(limit)
      found.push(...page.entries.map((entry) => entry.key))
      after = page.next
    } while (after !== undefined)
    expect(found).toEqual(must)
  }
}
