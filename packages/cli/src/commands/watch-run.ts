/** `sandlot runs watch`. */
import { type Run, type RunReport, Sandlot } from 'sandlot'
import { describeProgress, startProgressLine } from '../output/progress.ts'
import { note } from '../output/terminal.ts'
import { interruption } from './interruption.ts'
import { countsOf } from './live-counts.ts'
import { pause } from './pause.ts'
import { describeGroupCounts, describeLong } from './run-report.ts'
import { saturationNow } from './saturation.ts'
import { noteStandstill } from './standstill.ts'

const WATCH_MS = 500

/** From so long on the oldest attempt is told of. */
const LONG_MS = 30_000

/** Follows a run until it is over. It only looks: whoever leaves changes nothing. */
export async function watchRunCommand(name: string): Promise<void> {
  await using client = new Sandlot()
  using interrupted = interruption()
  const { signal } = interrupted
  const run = await client.rollouts.get(name, { signal })
  await noteStandstill(client)
  await follow(run, signal)
}

/** Draws how a run stands until it is over; returns its last report. */
export async function follow(run: Run, signal: AbortSignal): Promise<RunReport> {
  try {
    return await draw(run, signal)
  } catch (error) {
    if (signal.aborted) note(`left ${run.name}, which goes on`)
    throw error
  }
}

async function draw(run: Run, signal: AbortSignal): Promise<RunReport> {
  using line = startProgressLine()
  for (;;) {
    const report = await run.report({ signal })
    line.update(describeLive(report))
    if (report.run.state === 'finished') return report
    await pause(WATCH_MS, signal)
  }
}

/** `running: 120/492 done, …; limited by capacity`. */
export function describeLive(report: RunReport): string {
  const { run } = report
  const { state, reason, counts, groups, createdAtMs, finishedAtMs } = run
  const elapsedMs = (finishedAtMs ?? Date.now()) - createdAtMs
  const parts = [describeProgress(countsOf([run], counts.tasks, elapsedMs))]
  if (groups) parts.push(`groups: ${describeGroupCounts(groups)}`)
  const saturation = saturationNow(report)
  if (saturation) parts.push(saturation)
  const [first] = report.longest ?? []
  if (first && Date.now() - first.sinceMs > LONG_MS) parts.push(describeLong(first))
  return `${state}${reason ? ` (${reason})` : ''}: ${parts.join('; ')}`
}
