/** `sandlot runs episodes`. */
import { formatDuration } from '@sandlot/protocol'
import { type EpisodeItem, type EpisodeState, type Outcome, Sandlot } from 'sandlot'
import { formatTable } from '../output/table.ts'
import { note, printJson, printLine } from '../output/terminal.ts'
import { interruption } from './interruption.ts'

const LIMIT_DEFAULT = 100
const TEXT_SHOWN = 80

export interface ListEpisodesOptions {
  readonly state?: EpisodeState
  readonly outcome?: Outcome
  readonly limit?: number
  readonly json?: boolean
}

export async function listEpisodesCommand(
  name: string,
  { limit = LIMIT_DEFAULT, json, ...filters }: ListEpisodesOptions,
): Promise<void> {
  await using client = new Sandlot()
  using interrupted = interruption()
  const run = await client.rollouts.get(name)
  const items: EpisodeItem[] = []
  let isMore = false
  for await (const item of run.episodes({ ...filters, signal: interrupted.signal })) {
    isMore = items.length === limit
    if (isMore) break
    items.push(item)
  }
  if (json) return printJson(items)
  if (items.length === 0) return note('no episodes')
  const headings = ['KEY', 'EPISODE', 'STATE', 'PHASE', 'SINCE', 'ATTEMPT', 'OUTCOME', 'REWARD']
  printLine(formatTable([...headings, 'WHY'], items.map(cellsOf)))
  if (isMore) note(`there are more: --limit ${limit * 10}, or --state and --outcome to see fewer`)
}

function cellsOf(item: EpisodeItem): string[] {
  const { key, episode, state, phase, sinceMs, attempt, outcome, reward, error } = item
  return [
    key.slice(0, TEXT_SHOWN),
    episode,
    state,
    phase === state || state === 'done' ? '-' : phase,
    formatDuration(Math.max(0, Date.now() - sinceMs)),
    String(attempt),
    outcome ?? '-',
    reward === null ? '-' : String(reward),
    (error ?? '').slice(0, TEXT_SHOWN),
  ]
}
