import type { RunView } from 'sandlot'
import type { Counts } from '../output/progress.ts'

/** What several runs come to together. Tasks that are not submitted yet are queued too. */
export function countsOf(views: readonly RunView[], tasks: number, elapsedMs: number): Counts {
  const sum = (of: (view: RunView) => number) => views.reduce((total, view) => total + of(view), 0)
  const done = sum(({ counts }) => counts.done)
  const running = sum(({ counts }) => counts.running + counts.grading)
  const failures = new Map<string, number>()
  for (const { outcomes } of views) {
    for (const [outcome, count] of Object.entries(outcomes)) {
      if (outcome !== 'graded') failures.set(outcome, (failures.get(outcome) ?? 0) + count)
    }
  }
  return { done, running, queued: Math.max(0, tasks - done - running), failures, elapsedMs }
}
