/** Runs the policies side by side and compares every episode with what must come of it. */
import { type MapOptions, pythonFunction, type ResultRow, type Run, type Sandlot } from 'sandlot'
import type { HumanEvalTask } from './dataset.ts'
import { CANDIDATE, type Policy } from './policies.ts'
import { watchRuns } from './watch.ts'

export interface PolicyOutcome {
  readonly policy: Policy
  /** Name of its run. */
  readonly run: string
  readonly rows: readonly ResultRow[]
  /** One line for each episode that came out otherwise. */
  readonly wrong: readonly string[]
}

export interface PoliciesOptions {
  readonly from: MapOptions<HumanEvalTask>['from']
  readonly tasks: readonly HumanEvalTask[]
  readonly policies: readonly Policy[]
  /** Episodes in flight of each policy. */
  readonly concurrency: number
  readonly signal: AbortSignal
}

/** All policies at once; each is a run of its own with its own deadlines. Draws a live line meanwhile. */
export async function runPolicies(
  client: Sandlot,
  options: PoliciesOptions,
): Promise<PolicyOutcome[]> {
  const { tasks, policies, signal } = options
  // Whatever happens: a run that is not over is cancelled.
  await using started = new AsyncDisposableStack()
  const runs = policies.map((policy) => started.use(startRun(client, policy, options)))
  const results = Promise.all(
    runs.map(async (run, index) => {
      const policy = policies[index] as Policy
      const rows = await run.wait({ signal })
      return { policy, run: run.name, rows, wrong: compare(policy, tasks, rows) }
    }),
  )
  return await watchRuns(runs, results, { tasks: tasks.length * policies.length, signal })
}

function startRun(
  client: Sandlot,
  policy: Policy,
  { from, tasks, concurrency, signal }: PoliciesOptions,
): Run {
  return client.rollouts.map(tasks, policy.episode, {
    from,
    concurrency,
    signal,
    timeout: { agent: '5m', grade: '5m' },
    ...(policy.each ? { each: policy.each } : {}),
    resources: { memory: { request: '48MiB', limit: '768MiB' }, disk: '128MiB', pids: 128 },
    tags: { demo: policy.name },
    grade: pythonFunction<HumanEvalTask>({
      candidate: CANDIDATE,
      timeoutSeconds: 60,
      test: ({ prompt, test, entryPoint }) => ({ prelude: prompt, test, entryPoint }),
    }),
  })
}

/** One line for each episode that came out otherwise than it must. */
export function compare(
  policy: Policy,
  tasks: readonly HumanEvalTask[],
  rows: readonly ResultRow[],
): string[] {
  const byKey = new Map(rows.map((row) => [row.key, row]))
  const wrong: string[] = []
  if (rows.length !== tasks.length)
    wrong.push(`${policy.name}: ${rows.length} results for ${tasks.length} tasks`)
  for (const task of tasks) {
    const row = byKey.get(task.id)
    const expected = policy.expect(task)
    const right =
      row?.outcome === expected.outcome &&
      row.reward === expected.reward &&
      (expected.flag === undefined || row.flags.includes(expected.flag))
    if (right) continue
    const found = row
      ? `${row.outcome}, reward ${row.reward}, flags [${row.flags.join(' ')}]`
      : 'no result'
    const wanted = `${expected.outcome}, reward ${expected.reward}${expected.flag ? `, flag ${expected.flag}` : ''}`
    const cause = row && row.cause.length > 0 ? ` (${row.cause.join('; ').slice(0, 300)})` : ''
    wrong.push(`${policy.name} ${task.id}: ${found}; wanted ${wanted}${cause}`)
  }
  return wrong
}
