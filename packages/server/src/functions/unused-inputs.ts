import type { Engine } from '@sandlot/engine'
import { decodeJson } from '../json.ts'
import { deadPrefix, inputPins, QUEUE_PREFIX } from './names.ts'
import { deadRecord, taskBody } from './records.ts'

/**
 * Inputs that are kept for no task. An input is kept before its task is put: where a task of the same key stood already, or the daemon was
 * killed between the two, it is nobody's. Which those are, is found by what all tasks and dead letters name, so also while there are
 * always some. One that nothing named at two looks in a row is let go of: at the first its task may have been about to come.
 */
export class UnusedInputs {
  readonly #engine: Engine
  #before: ReadonlySet<string> = new Set()

  constructor(engine: Engine) {
    this.#engine = engine
  }

  /** One look at all queues. Memory: the names of inputs that are kept. */
  async drop(queues: readonly string[]): Promise<void> {
    const unused = await this.#kept(queues)
    // A task that dies goes from its queue to its letter: in this order it is seen in one of them.
    if (unused.size > 0) await this.#passTasks(unused)
    if (unused.size > 0) for (const uid of queues) await this.#passLetters(uid, unused)
    for (const name of unused) {
      if (!this.#before.has(name)) continue
      await this.#engine.blobs.unpin(name)
      unused.delete(name)
    }
    this.#before = unused
  }

  async #kept(queues: readonly string[]): Promise<Set<string>> {
    const names = new Set<string>()
    for (const uid of queues) {
      for (let after: string | undefined; ; ) {
        const options = after === undefined ? {} : { after }
        const { pins, next } = await this.#engine.blobs.pins(inputPins(uid), options)
        for (const { name } of pins) names.add(name)
        after = next
        if (after === undefined) break
      }
    }
    return names
  }

  async #passTasks(unused: Set<string>): Promise<void> {
    for (let after: string | undefined; ; ) {
      const options = after === undefined ? {} : { after }
      const { messages, next } = await this.#engine.queue.list(QUEUE_PREFIX, options)
      for (const { body } of messages) {
        const { pin } = taskBody.parse(decodeJson(body))
        if (pin !== null) unused.delete(pin)
      }
      after = next
      if (after === undefined) return
    }
  }

  async #passLetters(uid: string, unused: Set<string>): Promise<void> {
    for (let after: string | undefined; ; ) {
      const options = after === undefined ? {} : { after }
      const { entries, next } = await this.#engine.kv.list(deadPrefix(uid), options)
      for (const { value } of entries) {
        const { pin } = deadRecord.parse(decodeJson(value)).body
        if (pin !== null) unused.delete(pin)
      }
      after = next
      if (after === undefined) return
    }
  }
}
