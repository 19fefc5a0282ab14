/** Many inputs, of which only so many are under way as their reader keeps up with. */
import type { Waiting } from '../connection/context.ts'
import { toError } from '../connection/failure.ts'

export interface Mapping<Input, Sent, Row> extends Waiting {
  readonly inputs: Iterable<Input> | AsyncIterable<Input>
  readonly ordered: boolean
  /** Inputs that are taken and whose rows were not read. */
  readonly ahead: number
  /** Makes an input ready to be sent, one after the other: a large one is uploaded, and only one is in memory at a time. */
  readonly prepare: (input: Input, index: number) => Promise<Sent>
  readonly run: (sent: Sent, index: number) => Promise<Row>
}

/** Rows as they land, or in order. An input that can't be taken or sent ends it, after nothing more: what is under way goes on. */
export async function* mapInputs<Input, Sent, Row>(
  mapping: Mapping<Input, Sent, Row>,
): AsyncGenerator<Row> {
  const { inputs, ordered, ahead, prepare, run, signal } = mapping
  const iterator =
    Symbol.asyncIterator in inputs ? inputs[Symbol.asyncIterator]() : inputs[Symbol.iterator]()
  const landed = new Map<number, Row>()
  let taken = 0
  let given = 0
  let ended = false
  let stopped = false
  let failure: Error | undefined
  let wake = () => {}
  let resume = () => {}
  const fail = (error: unknown) => {
    failure ??= toError(error)
    wake()
  }
  async function pump(): Promise<void> {
    while (!stopped && !failure) {
      if (taken - given >= ahead) {
        await new Promise<void>((resolve) => {
          resume = resolve
        })
        continue
      }
      const next = await iterator.next()
      if (next.done || stopped) break
      const index = taken
      taken += 1
      const sent = await prepare(next.value, index)
      if (stopped) break
      run(sent, index).then((row) => {
        landed.set(index, row)
        wake()
      }, fail)
    }
    ended = true
    wake()
  }
  const abort = () => fail(signal?.reason)
  if (signal?.aborted) abort()
  signal?.addEventListener('abort', abort, { once: true })
  const pumping = pump().catch(fail)
  try {
    for (;;) {
      if (failure) throw failure
      const index = ordered ? given : landed.keys().next().value
      if (index !== undefined && landed.has(index)) {
        const row = landed.get(index) as Row
        landed.delete(index)
        given += 1
        resume()
        yield row
      } else if (ended && given === taken) return
      else {
        await new Promise<void>((resolve) => {
          wake = resolve
          if (failure || (ended && given === taken)) resolve()
        })
      }
    }
  } finally {
    stopped = true
    resume()
    signal?.removeEventListener('abort', abort)
    // An iterable that gives nothing is not waited for.
    void pumping.then(() => iterator.return?.()).catch(() => undefined)
  }
}
