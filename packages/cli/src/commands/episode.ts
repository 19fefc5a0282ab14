/** `sandlot episode`. */
import { type EpisodeView, type ExecView, type Run, Sandlot, SandlotError } from 'sandlot'
import { Mistake } from '../failure.ts'
import { printJson, printLine } from '../output/terminal.ts'
import { describeEpisode } from './describe-episode.ts'
import { interruption } from './interruption.ts'

const LOG = 'log'
const EPISODE_ID = /^ep_[0-9a-z]{20}$/
/** So many of them are the beginning of its run's id. */
const RUN_DIGITS = 13

export async function episodeCommand(
  nameOrId: string,
  key: string | undefined,
  { json }: { readonly json?: boolean },
): Promise<void> {
  await using client = new Sandlot()
  using interrupted = interruption()
  const { signal } = interrupted
  const name = key === undefined ? await runOf(client, nameOrId, signal) : nameOrId
  const run = await client.rollouts.get(name, { signal })
  const view = await run.episode(key ?? nameOrId, { signal })
  if (json) return printJson(view)
  const [execs, log] = await Promise.all([execsOf(client, view, signal), logOf(run, view, signal)])
  printLine(describeEpisode({ run: name, view, execs, log, nowMs: Date.now() }))
}

/** The name of the run that an id of an episode belongs to. */
async function runOf(client: Sandlot, id: string, signal: AbortSignal): Promise<string> {
  if (!EPISODE_ID.test(id)) {
    throw new Mistake(
      `${JSON.stringify(id)} is not the id of an episode`,
      'say the run as well: sandlot episode RUN KEY (`sandlot runs episodes RUN` lists keys and ids)',
    )
  }
  const start = `rn_${id.slice(3, 3 + RUN_DIGITS)}`
  for await (const view of client.rollouts.list({ signal })) {
    if (view.id.startsWith(start)) return view.name
  }
  throw new SandlotError('not_found', `no run has an episode ${id}`, {
    hint: 'It may have been deleted with its run: `sandlot runs list` shows those that are there.',
  })
}

/** What runs, or ran, in its sandboxes while they live; one that has just ended has none. */
async function execsOf(
  client: Sandlot,
  { progress }: EpisodeView,
  signal: AbortSignal,
): Promise<ExecView[]> {
  const lists = progress.map(async ({ sandbox }) => {
    if (sandbox === null) return []
    try {
      return await (await client.sandboxes.get(sandbox, { signal })).execs({ signal })
    } catch (error) {
      if (signal.aborted) throw error
      return []
    }
  })
  return (await Promise.all(lists)).flat()
}

async function logOf(run: Run, { row }: EpisodeView, signal: AbortSignal): Promise<string> {
  if (!row?.artifacts.some(({ name }) => name === LOG)) return ''
  return Buffer.from(await run.artifact(row, LOG, { signal })).toString()
}
