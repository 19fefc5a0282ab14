import { SandlotError } from '@sandlot/protocol'

/** The tasks of a call, opened once: they may be a stream that can't be read twice. */
export interface TaskSource<Task> {
  /** All of them are there already. Otherwise they may go on without an end. */
  readonly isList: boolean
  next(): Promise<IteratorResult<Task>>
  /** Lets go of what is not read. */
  close(): Promise<void>
}

/**
 * Opens the tasks and sees to it that there is one.
 * @throws SandlotError `invalid_request` for what is no list of tasks, or an empty one
 */
export async function openTasks<Task>(
  tasks: Iterable<Task> | AsyncIterable<Task>,
): Promise<TaskSource<Task>> {
  const source = sourceOf(tasks)
  let first: IteratorResult<Task> | undefined = await source.next()
  if (first.done) {
    throw new SandlotError('invalid_request', 'there are no tasks', {
      hint: 'Pass at least one task; where a filter left none, there is nothing to run.',
    })
  }
  return {
    isList: source.isList,
    async next() {
      const next = first ?? (await source.next())
      first = undefined
      return next
    },
    close: source.close,
  }
}

/** Opens the tasks, of which there may be none. Throws `invalid_request`. */
export function sourceOf<Task>(tasks: Iterable<Task> | AsyncIterable<Task>): TaskSource<Task> {
  if (!isIterable(tasks)) {
    const what = `the tasks are ${describeValue(tasks)}, not an array or another iterable`
    throw new SandlotError('invalid_request', what, {
      hint: 'Pass an array of tasks, or an (async) generator of them.',
    })
  }
  const iterator =
    Symbol.asyncIterator in tasks ? tasks[Symbol.asyncIterator]() : tasks[Symbol.iterator]()
  return {
    isList: Array.isArray(tasks) || tasks instanceof Set || tasks instanceof Map,
    next: async () => await iterator.next(),
    close: async () => void (await iterator.return?.()),
  }
}

function isIterable(tasks: unknown): boolean {
  return (
    typeof tasks === 'object' &&
    tasks !== null &&
    (Symbol.iterator in tasks || Symbol.asyncIterator in tasks)
  )
}

/** For an error's message. */
export function describeValue(value: unknown): string {
  if (value === null) return 'null'
  if (typeof value === 'object') return 'an object'
  if (typeof value === 'function') return 'a function'
  return value === undefined ? 'undefined' : `the ${typeof value} ${String(value).slice(0, 80)}`
}
