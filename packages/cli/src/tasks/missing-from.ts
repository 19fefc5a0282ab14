/** Goes on where other runs left tasks without a result that counts. */
import type { Sandlot } from 'sandlot'
import { Mistake } from '../failure.ts'
import { note } from '../output/terminal.ts'

/** `name` may not be that of such a run itself: its results would be taken for, or replaced by, those of the new one. @throws Mistake */
export function checkMissingFrom(from: readonly string[], name: string | undefined): void {
  if (name === undefined || !from.includes(name)) return
  throw new Mistake(
    `${name} is both the run that is looked at and the new one`,
    'give the new run a --name of its own, or none',
  )
}

/**
 * Keys of the tasks that none of the runs `from` has a valid result of: what failed, what was cancelled, and what was never there. A task of a
 * group is one of them where any of its members is; members that were cut are not missed.
 * @throws Mistake while such a run goes on
 */
export async function missingFrom(
  client: Sandlot,
  from: readonly string[],
  keys: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const done = new Set<string>()
  for (const name of from) for (const key of await doneIn(client, name, signal)) done.add(key)
  const missing = new Set(keys.filter((key) => !done.has(key)))
  const counted = `${missing.size} of ${keys.length} ${keys.length === 1 ? 'task' : 'tasks'}`
  const where = from.length === 1 ? from[0] : `any of ${from.join(', ')}`
  note(`${counted} ${missing.size === 1 ? 'has' : 'have'} no valid result in ${where}`)
  return missing
}

/** Keys of the tasks whose every result in it counts. */
async function doneIn(client: Sandlot, from: string, signal: AbortSignal): Promise<Set<string>> {
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
  return new Set([...valid].filter((key) => !invalid.has(key)))
}
