/** `sandlot runs …`. */
import { formatDuration } from '@sandlot/protocol'
import { type Run, type RunState, type RunView, Sandlot } from 'sandlot'
import { formatTable } from '../output/table.ts'
import { note, printJson, printLine } from '../output/terminal.ts'
import { describeCounts, describeReport } from './run-report.ts'
import { noteStandstill } from './standstill.ts'

export interface ListRunsOptions {
  readonly state?: RunState
  readonly json?: boolean
}

export async function listRunsCommand({ json, ...filters }: ListRunsOptions): Promise<void> {
  await using client = new Sandlot()
  await noteStandstill(client)
  const views: RunView[] = []
  for await (const view of client.rollouts.list(filters)) views.push(view)
  views.sort((a, b) => b.createdAtMs - a.createdAtMs)
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
  if (json) return printJson(report)
  printLine(describeReport(report))
  if (report.run.state !== 'finished') await noteStandstill(client)
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
