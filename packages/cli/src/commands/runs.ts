/** `sandlot runs …`. */
import { formatDuration } from '@sandlot/protocol'
import { type Run, type RunView, Sandlot } from 'sandlot'
import { describeProgress, startProgressLine } from '../output/progress.ts'
import { formatTable } from '../output/table.ts'
import { note, printJson, printLine } from '../output/terminal.ts'
import { interruption } from './interruption.ts'
import { pause } from './pause.ts'
import { describeCounts, describeGroupCounts, describeReport } from './run-report.ts'

const WATCH_MS = 500

export async function listRunsCommand({ json }: { json?: boolean }): Promise<void> {
  await using client = new Sandlot()
  const views: RunView[] = []
  for await (const view of client.rollouts.list()) views.push(view)
  if (json) return printJson(views)
  if (views.length === 0) return note('no runs')
  const rows = views.map(({ name, state, counts, outcomes, createdAtMs, reason }) => [
    name,
    state,
    `${counts.done}/${counts.tasks}`,
    String(counts.running + counts.grading),
    describeCounts(outcomes),
    formatDuration(Date.now() - createdAtMs),
    reason ?? '',
  ])
  printLine(formatTable(['NAME', 'STATE', 'DONE', 'RUNNING', 'OUTCOMES', 'AGE', 'WHY'], rows))
}

export async function showRunCommand(name: string, { json }: { json?: boolean }): Promise<void> {
  await using client = new Sandlot()
  const report = await (await client.rollouts.get(name)).report()
  if (json) printJson(report)
  else printLine(describeReport(report))
}

/** Follows a run until it is over. */
export async function watchRunCommand(name: string): Promise<void> {
  await using client = new Sandlot()
  using interrupted = interruption()
  using line = startProgressLine()
  const run = await client.rollouts.get(name)
  for (;;) {
    const view = await run.view({ signal: interrupted.signal })
    line.update(progressOf(view))
    if (view.state === 'finished') return
    await pause(WATCH_MS, interrupted.signal)
  }
}

function progressOf({
  counts,
  outcomes,
  createdAtMs,
  finishedAtMs,
  state,
  reason,
  groups,
}: RunView): string {
  const failures = new Map(Object.entries(outcomes).filter(([outcome]) => outcome !== 'graded'))
  const elapsedMs = (finishedAtMs ?? Date.now()) - createdAtMs
  const text = describeProgress({
    done: counts.done,
    running: counts.running + counts.grading,
    queued: counts.queued,
    failures: failures as Map<string, number>,
    elapsedMs,
  })
  const told = groups ? `${text}, groups: ${describeGroupCounts(groups)}` : text
  return `${state}${reason ? ` (${reason})` : ''}: ${told}`
}

/** One JSON row a line, from a cursor, until the run is over. */
export async function resultsCommand(name: string, { from }: { from?: string }): Promise<void> {
  await using client = new Sandlot()
  using interrupted = interruption()
  const run = await client.rollouts.get(name)
  const options = {
    signal: interrupted.signal,
    dropped: true,
    ...(from === undefined ? {} : { from }),
  }
  for await (const row of run.results(options)) printLine(JSON.stringify(row))
}

export async function cancelRunCommand(name: string): Promise<void> {
  await using client = new Sandlot()
  const run = await client.rollouts.get(name)
  const { state, counts } = await run.view()
  const done = `${counts.done} of ${counts.tasks} episodes were done`
  if (state === 'finished') return note(`${name} is finished already: ${done}`)
  await run.cancel()
  note(`${name} is being cancelled; ${done}`)
}

export async function pauseRunCommand(name: string): Promise<void> {
  await using client = new Sandlot()
  const run = await client.rollouts.get(name)
  if (await isOver(run, 'nothing is left to pause')) return
  await run.pause()
  note(`${name} is paused: no more attempts start`)
}

export async function resumeRunCommand(name: string): Promise<void> {
  await using client = new Sandlot()
  const run = await client.rollouts.get(name)
  if (await isOver(run, 'nothing is left to run')) return
  await run.resume()
  note(`${name} goes on`)
}

async function isOver(run: Run, so: string): Promise<boolean> {
  const { state, counts } = await run.view()
  if (state !== 'finished') return false
  note(`${run.name} is finished already, ${counts.done} of ${counts.tasks} episodes: ${so}`)
  return true
}

export async function deleteRunCommand(name: string): Promise<void> {
  await using client = new Sandlot()
  await (await client.rollouts.get(name)).delete()
  note(`deleted ${name} with its results`)
}
