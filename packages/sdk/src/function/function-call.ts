import { LIMITS, type QueueResult, SandlotError } from '@sandlot/protocol'
import type { ClientContext, Waiting } from '../connection/context.ts'
import { readValue } from './function-error.ts'

export interface CallAddress {
  readonly queue: string
  readonly group: string
  readonly task: string
}

/** A call whose result is fetched later, also by another process: by its id. */
export class FunctionCall<Output> {
  readonly id: string
  readonly #context: ClientContext
  readonly #address: CallAddress

  /** Made by `spawn` and `client.call`. */
  constructor(context: ClientContext, id: string) {
    this.#context = context
    this.id = id
    this.#address = parseCallId(id)
  }

  /** Waits for its end. Resolves with what the function returned, and rejects as `remote` does. */
  async result(waiting: Waiting = {}): Promise<Output> {
    for (;;) {
      const result = await this.#ask(LIMITS.waitMs, waiting)
      if (result) return (await readValue(this.#context, result, waiting)) as Output
    }
  }

  /** Whether it has ended. */
  async isDone(waiting: Waiting = {}): Promise<boolean> {
    return (await this.#ask(0, waiting)) !== null
  }

  async #ask(wait: number, { signal }: Waiting): Promise<QueueResult | null> {
    const { queue, group, task } = this.#address
    const { result } = await this.#context.http.json<{ result: QueueResult | null }>(
      'getTaskResult',
      { parameters: { name: queue, task }, query: { call: group, wait }, signal },
    )
    return result
  }
}

export function formatCallId({ queue, group, task }: CallAddress): string {
  return `${queue}/${group}/${task}`
}

function parseCallId(id: string): CallAddress {
  const [queue = '', group = '', task = '', ...rest] = String(id).split('/')
  if (queue !== '' && group !== '' && task !== '' && rest.length === 0)
    return { queue, group, task }
  throw new SandlotError(
    'invalid_request',
    `${JSON.stringify(String(id).slice(0, 100))} is not the id of a call`,
    {
      hint: 'Pass the `id` of what `spawn` gave.',
    },
  )
}
