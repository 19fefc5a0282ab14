import { expect } from 'vitest'
import type { BusFaults } from '../bus-delivery.ts'
import type { Engine } from '../engine.ts'
import type { EngineErrorCode } from '../error.ts'
import type { FakeClock } from './fake-clock.ts'

/** What an implementation gives the suites: engines on empty places, with a clock that the test moves. */
export type MakeEngine = (options?: { busFaults?: BusFaults }) => Promise<EngineUnderTest>

export interface EngineUnderTest extends AsyncDisposable {
  /** The present one. */
  readonly engine: Engine
  readonly clock: FakeClock
  /** Ends the engine without closing it, as SIGKILL would, and opens another in the same place. */
  crash(): Promise<Engine>
  /** Closes the engine and opens another in the same place. */
  reopen(): Promise<Engine>
}

export function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

export function text(payload: Uint8Array): string {
  return new TextDecoder().decode(payload)
}

/** Payloads of records as text. */
export function texts(records: readonly { readonly bytes: Uint8Array }[]): string[] {
  return records.map((record) => text(record.bytes))
}

/** The call must fail with the engine's error of this code. Returns its details. */
export async function expectCode(call: Promise<unknown>, code: EngineErrorCode) {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toMatchObject({ name: 'EngineError', code, hint: expect.stringMatching(/\.$/) })
  return (error as { details: Record<string, unknown> }).details
}

/** The next `count` items; the iteration goes on. */
export async function take<T>(items: AsyncIterator<T>, count: number): Promise<T[]> {
  const taken: T[] = []
  while (taken.length < count) {
    const { done, value } = await items.next()
    if (done) throw new Error(`ended after ${taken.length} of ${count}`)
    taken.push(value)
  }
  return taken
}

/** Resolves once the condition holds; the engine's own threads bring it about, so turns of the event loop are given to them. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setImmediate(resolve))
}
