import type { Coordinator } from '../inside.ts'

const TASKS_AT_ONCE = 1_000

/** Tasks of these numbers, in batches. */
export async function putTasks(
  ours: Coordinator,
  run: string,
  from: number,
  to: number,
): Promise<void> {
  for (let first = from; first < to; first += TASKS_AT_ONCE) {
    const tasks = Array.from({ length: Math.min(TASKS_AT_ONCE, to - first) }, (_, index) => ({
      key: `task-${first + index}`,
      json: JSON.stringify({ number: first + index, prompt: 'Write a function that adds.' }),
    }))
    await ours.putTasks('default', run, tasks)
  }
}
