import type { QueueView } from '@sandlot/protocol'
import type { ClientContext, Waiting } from '../connection/context.ts'
import { pagesOf } from '../connection/pages.ts'
import { refuseUnknown } from '../connection/unknown-option.ts'
import { TaskQueue } from './task-queue.ts'

export interface ListQueues extends Waiting {
  /** Also those of functions that are called. Default: queues of tasks alone. */
  readonly all?: boolean
}

/** `client.queues`: those that are there. `client.queue` makes one. */
export class Queues {
  readonly #context: ClientContext

  constructor(context: ClientContext) {
    this.#context = context
  }

  /** Oldest first, page by page as they are read. */
  async *list(options: ListQueues = {}): AsyncGenerator<QueueView> {
    refuseUnknown(options, ['all', 'signal'])
    const { all = false, signal } = options
    const views = pagesOf<QueueView>(this.#context, 'listQueues', signal ? { signal } : {})
    for await (const view of views) if (all || view.kind === 'tasks') yield view
  }

  /** The queue of a name, as it is. Throws `queue_unknown`. */
  async get<Input = unknown, Output = unknown>(
    name: string,
    { signal }: Waiting = {},
  ): Promise<TaskQueue<Input, Output>> {
    const parameters = { name }
    const view = await this.#context.http.json<QueueView>('getQueue', { parameters, signal })
    return new TaskQueue(this.#context, name, undefined, {}, view)
  }
}
