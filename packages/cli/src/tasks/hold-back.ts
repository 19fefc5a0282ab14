/** Sets apart what is in quarantine, and says so. */
import { LIMITS } from '@sandlot/protocol'
import { Mistake } from '../failure.ts'
import { note } from '../output/terminal.ts'
import { readQuarantine, sortOut } from '../task-doctor/quarantine.ts'

const NAMED_MAX = 10

export interface HeldBack<Task> {
  readonly fit: readonly Task[]
  /** Of the others, by their keys: why they are not to be run. */
  readonly why: ReadonlyMap<string, string>
}

export async function holdBack<Task extends { readonly key: string; digest(): Promise<string> }>(
  tasks: readonly Task[],
  file: string | undefined,
): Promise<HeldBack<Task>> {
  if (file === undefined) return { fit: tasks, why: new Map() }
  const list = await readQuarantine(file)
  const listed = new Set(list.tasks.map(({ key }) => key))
  const known = tasks.map(async (task) => ({
    ...{ key: task.key, task },
    // Of the others nobody asks.
    digest: listed.has(task.key) ? await task.digest() : '',
  }))
  const { fit, held, changed } = sortOut(await Promise.all(known), list)
  if (held.length > 0) {
    const named = held.slice(0, NAMED_MAX).map(({ entry }) => `${entry.key} (${entry.condition})`)
    const more = held.length > NAMED_MAX ? ` and ${held.length - NAMED_MAX} more` : ''
    note(`not run, as ${file} says: ${named.join(', ')}${more}`)
  }
  for (const { key } of changed) note(`${key} is in ${file}, and another one since: it is run`)
  if (fit.length === 0) {
    throw new Mistake(`all tasks are in quarantine by ${file}`, 'mend them, or take another list')
  }
  const why = held.map(({ entry: { key, condition, why } }) => {
    const text = `${condition}: ${why}`.slice(0, LIMITS.causeLength).toWellFormed()
    return [key, text] as const
  })
  return { fit: fit.map(({ task }) => task), why: new Map(why) }
}
