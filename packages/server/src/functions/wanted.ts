import type { QueueRecord } from './records.ts'

/** How many containers a queue should have, with so many tasks that wait or run: pure. */
export function wantedContainers(tasks: number, autoscale: QueueRecord['autoscale']): number {
  const { tasksPerContainer, minContainers, maxContainers } = autoscale
  const wanted = Math.ceil(tasks / tasksPerContainer)
  return Math.max(minContainers, Math.min(maxContainers, wanted))
}
