/** A run that takes tasks for as long as it is open. */
import { createHash } from 'node:crypto'
import type { RunView } from '@sandlot/protocol'
import type { ClientContext, Waiting } from '../connection/context.ts'
import { joinSignals } from '../connection/signals.ts'
import { Run } from './run.ts'
import type { RunPart } from './run-part.ts'
import { type Submitted, submitTasks } from './submission.ts'
import { namedKey, type TaskNaming } from './task-put.ts'
import { sourceOf } from './tasks.ts'

export interface Put {
  readonly key: string
  /** False: it was there already, with the same content. */
  readonly added: boolean
}

export interface PutMany extends Submitted {
  /** One for each task, in their order. */
  readonly keys: readonly string[]
}

/**
 * A run to which tasks can be put until it is closed: by this process, and by any other that attaches to it. It lives in the daemon:
 * a process that is killed opens it again under the same name and goes on.
 */
export class OpenRun<Task = unknown> extends Run {
  readonly #part: RunPart
  readonly #naming: TaskNaming<Task>

  /** Made by `client.rollouts`. */
  constructor(context: ClientContext, name: string, { created, part, naming }: OpenRunParts<Task>) {
    super(context, name, { created, part })
    this.#part = part
    this.#naming = naming
  }

  /** Resolves once the task is durable. The same key with other content is refused with `task_conflict`, a closed run with `run_closed`. */
  async put(task: Task, options: Waiting = {}): Promise<Put> {
    const { keys, added } = await this.putMany([task], options)
    return { key: keys[0] ?? '', added: added > 0 }
  }

  /** Puts a list, in requests of many. Where one of them is refused those before it may be in the run: put again they are known. */
  async putMany(
    tasks: Iterable<Task> | AsyncIterable<Task>,
    { signal }: Waiting = {},
  ): Promise<PutMany> {
    const source = sourceOf(tasks)
    const keys: string[] = []
    using joined = joinSignals(signal, this.#part.failed)
    try {
      await this.exists()
      const submitted = await submitTasks(this.context, {
        run: this.name,
        tasks: source,
        naming: this.#naming,
        signal: joined.signal,
        onTask: ({ key }) => keys.push(key),
      })
      return { ...submitted, keys }
    } catch (error) {
      this.#part.check()
      throw error
    } finally {
      await source.close()
    }
  }

  /** No more tasks come, from nobody: what is there is run, then the run is over. Idempotent. */
  async close({ signal }: Waiting = {}): Promise<RunView> {
    await this.exists()
    const parameters = { name: this.name }
    return await this.context.http.json<RunView>('closeRun', { parameters, signal })
  }
}

export interface OpenRunParts<Task> {
  readonly created: Promise<void>
  readonly part: RunPart
  readonly naming: TaskNaming<Task>
}

/** Positions mean nothing to another process, so a task without a name is known by its content. */
export function openNaming<Task>({
  key,
  expected,
  group,
}: Partial<Pick<TaskNaming<Task>, 'expected' | 'group'>> & {
  readonly key?: (task: Task, index: number) => string
}): TaskNaming<Task> {
  return {
    ...(expected ? { expected } : {}),
    ...(group ? { group } : {}),
    keyOf: (task, index, json) =>
      namedKey(task, index, { ...(key ? { key } : {}), otherwise: () => contentKey(json) }),
  }
}

function contentKey(json: string): string {
  return createHash('sha256').update(json).digest('hex').slice(0, CONTENT_KEY_DIGITS)
}

const CONTENT_KEY_DIGITS = 32
