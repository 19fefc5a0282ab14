import { LIMITS, SandlotError } from '@sandlot/protocol'
import { checkMembers } from '../group/members.ts'
import { CORE_LIMITS } from '../limits.ts'
import { type Decision, emit, ignore } from './decision.ts'
import type { InputOf, TaskInput } from './input.ts'

/**
 * All of the batch or nothing.
 * @throws SandlotError `run_closed`, `too_large`, `invalid_request`, or `task_conflict` where a key
 * is there with another content; the run is as it was.
 */
export function decideTasks(decision: Decision, input: InputOf<'tasks_put'>): void {
  const { run, step } = decision
  if (input.tasks.length > CORE_LIMITS.tasksPerPut) {
    throw new SandlotError(
      'too_large',
      `${input.tasks.length} tasks in one batch, at most ${CORE_LIMITS.tasksPerPut} are taken`,
    )
  }
  const added = new Map<string, TaskInput>()
  for (const task of input.tasks) {
    checkTask(task)
    const known = run.keys.check(task.key, task.digest)
    const twin = added.get(task.key)
    if (known === 'conflict' || (twin && twin.digest !== task.digest)) {
      const key = JSON.stringify(task.key.slice(0, 80))
      throw new SandlotError('task_conflict', `the key ${key} is there with another content`)
    }
    if (known === 'new' && !twin) added.set(task.key, task)
  }
  // A closed run still knows its tasks: a repeated put is no new one.
  if (run.closed && added.size > 0) {
    throw new SandlotError('run_closed', 'the run takes no more tasks')
  }
  checkMembers(run, added.values())
  step.put = { added: added.size, known: input.tasks.length - added.size }
  if (added.size > 0) emit(decision, { type: 'tasks_added', tasks: [...added.values()] })
}

export function decideClosed(decision: Decision): void {
  if (decision.run.closed) ignore(decision, 'the run was closed already')
  else emit(decision, { type: 'tasks_closed' })
}

function checkTask(task: TaskInput): void {
  const wrong =
    task.key.length === 0 || task.key.length > LIMITS.keyLength
      ? `a key has 1 to ${LIMITS.keyLength} characters`
      : !Number.isSafeInteger(task.seed)
        ? 'a seed is a whole number'
        : (task.taskJson === null) === (task.taskBlob === null)
          ? 'a task has either json or blob'
          : task.expectedMs !== undefined && !(task.expectedMs >= 0)
            ? 'expectedMs is a number from 0'
            : undefined
  if (wrong !== undefined) throw new SandlotError('invalid_request', wrong)
}
