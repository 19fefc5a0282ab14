/** Goes on where another run left tasks without a result that counts. */
import type { Sandlot } from 'sandlot'
import { Mistake } from '../failure.ts'
import { note } from '../output/terminal.ts'

/** `name` may not be that of the run itself: its results would be taken for, or replaced by, those of the new one. @throws Mistake */
export function checkMissingFrom(from: string | undefined, name: string | undefined): void {
  if (from === undefined || from !== name) return
  throw new Mistake(
    `${from} is both the run that is looked at and the new one`,
    'give the new run a --name of its own, or none',
  )
}

/**
 * The tasks that the run `from` has no valid result of: what failed, what was cancelled, and what it never had. A task of a group is
 * one of them where any of its members is; members that were cut are not missed.
 * @throws Mistake while that run goes on
 */
export async function missingFrom<Task extends { readonly key: string }>(
  client: Sandlot,
  from: string,
  tasks: readonly Task[],
  signal: AbortSignal,
): Promise<readonly Task[]> {
  const run = await client.rollouts.get(from, { signal })
  const { state } = await run.view({ signal })
  if (state !== 'finished') {
    throw new Mistake(
      `${from} is not over: what it has in work would be run twice`,
      `\`sandlot runs watch ${from}\` follows it to its end, \`sandlot runs cancel ${from}\` ends it`,
    )
  }
  const valid = new Set<string>()
  const invalid = new Set<string>()
  for await (const row of run.results({ signal, dropped: true, wait: false })) {
    if (row.outcome === 'cancelled_quorum') continue
    const { key, group, member } = row
    const task = key === `${group}#${member}` ? group : key
    ;(row.valid ? valid : invalid).add(task)
  }
  const missing = tasks.filter(({ key }) => invalid.has(key) || !valid.has(key))
  const counted = `${missing.length} of ${tasks.length} ${tasks.length === 1 ? 'task' : 'tasks'}`
  note(`${counted} ${missing.length === 1 ? 'has' : 'have'} no valid result in ${from}`)
  return missing
}
