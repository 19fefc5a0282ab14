/** `sandlot demo`: HumanEval by three scripted policies, every episode in its own sandbox. */
import { availableParallelism } from 'node:os'
import { Image, Sandlot } from 'sandlot'
import { loadHumanEval } from '../demo/dataset.ts'
import { empty, gold, hostile } from '../demo/policies.ts'
import { type Progress, runPolicies } from '../demo/run-policies.ts'
import { formatSummary, summarize } from '../demo/summary.ts'
import { describeProgress, startProgressLine } from '../output/progress.ts'
import { note, printJson, printLine } from '../output/terminal.ts'
import { ensureMachine } from '../setup/machine.ts'
import { interruption } from './interruption.ts'

export interface DemoOptions {
  readonly tasks?: number
  readonly concurrency?: number
  readonly json?: boolean
}

const WRONG_SHOWN = 20

/** Exit code 0 only if every episode came out as it must and no sandbox is left. */
export async function demoCommand(options: DemoOptions): Promise<number> {
  await ensureMachine(note)
  const tasks = (await loadHumanEval(note)).slice(0, options.tasks)
  const policies = [gold, empty, hostile]
  const concurrency = options.concurrency ?? availableParallelism()
  using interrupted = interruption()
  await using client = await Sandlot.local()
  const { id: from } = await client.images.build(Image.debian('bookworm', ['python3']), {
    onLog: (line) => note(`image: ${line}`),
    signal: interrupted.signal,
  })
  note(
    `${tasks.length} tasks × ${policies.length} policies, ${concurrency} episodes of each in flight`,
  )
  const startedMs = performance.now()
  const outcomes = await watch(
    (onProgress) =>
      runPolicies(client, {
        from,
        tasks,
        policies,
        concurrency,
        signal: interrupted.signal,
        onProgress,
      }),
    Math.min(concurrency, tasks.length) * policies.length,
  )
  const wallMs = performance.now() - startedMs
  const summary = summarize(outcomes, wallMs, await countLeft(client))
  const wrong = outcomes.flatMap((outcome) => outcome.wrong)
  if (options.json) printJson(summary)
  else printLine(formatSummary(summary))
  for (const line of wrong.slice(0, WRONG_SHOWN)) note(`WRONG ${line}`)
  if (wrong.length > WRONG_SHOWN) note(`… and ${wrong.length - WRONG_SHOWN} more`)
  if (wrong.length === 0 && summary.leaked === 0)
    note('every episode came out as it must, nothing is left')
  return wrong.length === 0 && summary.leaked === 0 ? 0 : 1
}

async function watch<T>(
  work: (onProgress: (progress: Progress) => void) => Promise<T>,
  inFlight: number,
): Promise<T> {
  using line = startProgressLine()
  const startedMs = performance.now()
  return await work(({ done, total, failures }) => {
    const running = Math.min(inFlight, total - done)
    const elapsedMs = performance.now() - startedMs
    line.update(
      describeProgress({ done, running, queued: total - done - running, failures, elapsedMs }),
    )
  })
}

/** Sandboxes of the demo's runs that live on. */
async function countLeft(client: Sandlot): Promise<number> {
  let left = 0
  for await (const { state, owner } of client.sandboxes.list()) {
    if (state !== 'stopped' && owner !== 'client') left++
  }
  return left
}
