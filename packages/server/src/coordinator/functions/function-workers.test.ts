import type {
  EpisodeFunction,
  FunctionAttempt,
  FunctionAttemptEnd,
  RunCreate,
} from '@sandlot/protocol'
import { SandlotError } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import type { ContainerInput } from '../../functions/container.ts'
import { FakeContainers } from '../../functions/testing/fake-containers.ts'
import { until } from '../simulated/settle.ts'
import { overTime, runCreate, simulate, someTasks, startRun } from '../simulated/setup.ts'

type Attempt = FunctionAttempt & { readonly input: ContainerInput }

/** Containers whose function does this. */
function containersOf(does: (attempt: Attempt) => Partial<FunctionAttemptEnd> | Promise<object>) {
  return new FakeContainers(async (json, input) => {
    const attempt = JSON.parse(json ?? '') as FunctionAttempt
    const measured = { agentMs: 5, modelMs: 0, lagMs: 0 }
    return JSON.stringify({ ...measured, ...(await does({ ...attempt, input })) })
  })
}

const returned = (reward: number) => ({ report: { kind: 'returned', reward } as const })
const never = () => new Promise<never>(() => {})

async function world(containers: FakeContainers) {
  const simulation = await simulate({ containers: containers.source })
  const { digest: bundle } = await simulation.engine.blobs.put(Buffer.from('code'))
  const run = (more: Partial<RunCreate> = {}, given: Partial<EpisodeFunction> = {}): RunCreate =>
    runCreate('a', {
      kind: 'function',
      function: { bundle, export: 'attempt', label: 'e.ts', concurrency: 2, ...given },
      ...more,
    })
  return { simulation, run }
}

test('containers take the leases, as many as there are episodes for', async () => {
  const containers = containersOf(({ lease }) => returned(lease.index))
  const { simulation, run } = await world(containers)
  await using _ = simulation
  await startRun(simulation, run(), someTasks(6))
  const rows = await overTime(simulation)
  expect(rows.map(({ outcome, reward }) => [outcome, reward])).toEqual(
    [0, 1, 2, 3, 4, 5].map((n) => ['graded', n]),
  )
  expect(rows[0]?.phases.agentMs).toBe(5)
  expect(containers.opened.length).toBeLessThanOrEqual(2)
  expect(containers.opened[0]).toMatchObject({ reachesApi: true, tags: { run: 'a' } })
  await until('their end', () => containers.live.size === 0)
})

test('a lease comes with a token of its sandbox, which ends with it', async () => {
  const alive: boolean[] = []
  const seen: FunctionAttempt[] = []
  const containers = containersOf(({ lease, token, url }) => {
    seen.push({ lease, token, url })
    alive.push(simulation.coordinator.isLeaseAlive(lease.lease, lease.sandbox))
    return returned(1)
  })
  const { simulation, run } = await world(containers)
  await using _ = simulation
  await startRun(simulation, run(), someTasks(1))
  await overTime(simulation)
  const [{ lease, token } = fail()] = seen
  expect(token).toBe(`${lease.sandbox}/${lease.lease}`)
  expect(alive).toEqual([true])
  expect(simulation.coordinator.isLeaseAlive(lease.lease, lease.sandbox)).toBe(false)
})

test('a throw is episode_error, a failed model is model_error, and neither is a zero', async () => {
  const containers = containersOf(({ lease }) => {
    if (lease.index === 0) throw new RangeError('no good')
    return { report: { kind: 'model_failed', cause: ['it is away'] } }
  })
  const { simulation, run } = await world(containers)
  await using _ = simulation
  await startRun(simulation, run({ retry: { model: 0 } }), someTasks(2))
  expect(await overTime(simulation)).toMatchObject([
    { outcome: 'episode_error', reward: null, cause: ['RangeError: no good'] },
    { outcome: 'model_error', reward: null },
  ])
})

test('the agent’s clock stands while the model answers', async () => {
  const containers = containersOf(async ({ input }) => {
    input.onNews?.({ kind: 'model_started' })
    const sinceMs = simulation.clock.now()
    await until('time goes by', () => simulation.clock.now() > sinceMs + 10_000)
    input.onNews?.({ kind: 'model_ended' })
    return returned(1)
  })
  const { simulation, run } = await world(containers)
  await using _ = simulation
  await startRun(simulation, run({ timeout: { agent: 2_000, model: 60_000 } }), someTasks(1))
  expect(await overTime(simulation)).toMatchObject([{ outcome: 'graded', reward: 1 }])
})

test('the death of a container spends no retry, and three of them are the episode’s doing', async () => {
  const deaths = new Map<string, number>()
  const containers: FakeContainers = containersOf(async ({ lease: { key, attempt } }) => {
    const dies = key === 't0' ? attempt < 3 : key === 't1'
    if (!dies) return returned(1)
    deaths.set(key, attempt)
    for (const container of [...containers.live]) container.lose()
    return await never()
  })
  const { simulation, run } = await world(containers)
  await using _ = simulation
  const given = run({ retry: { infra: 0 }, concurrency: 1 }, { concurrency: 1 })
  await startRun(simulation, given, someTasks(2))
  const [first, second] = await overTime(simulation)
  expect(first).toMatchObject({ outcome: 'graded', reward: 1, attempt: 3 })
  expect(first?.attempts.slice(0, 2).map(({ outcome }) => outcome)).toEqual([null, null])
  expect(first?.attempts[0]?.cause.join()).toMatch(/container sb_\d was lost/)
  expect(second).toMatchObject({ outcome: 'episode_error', reward: null })
  expect([...deaths]).toEqual([
    ['t0', 2],
    ['t1', 3],
  ])
})

test('what ran when the daemon was killed begins again, at nobody’s cost', async () => {
  let killed = false
  const containers = containersOf(async () => (killed ? returned(1) : await never()))
  const { simulation, run } = await world(containers)
  await using _ = simulation
  await startRun(simulation, run({ retry: { infra: 0 } }), someTasks(1))
  await until('it runs', () => {
    if (simulation.isIdle) simulation.clock.advance(100)
    return containers.inputs.length === 1
  })
  killed = true
  await simulation.restart()
  const [row] = await overTime(simulation)
  expect(row).toMatchObject({ outcome: 'graded', reward: 1 })
})

test('a handler that goes on when its time is over has its container replaced; others in it end first', async () => {
  const containers = containersOf(async ({ lease, input }) => {
    if (lease.key === 't0') return await never()
    if (lease.key === 't1') {
      await until('it is late', () => containers.aborted.length > 0)
      input.onNews?.({ kind: 'alive', lagMs: 0 })
      await until('another container', () => containers.opened.length > 1)
    }
    return returned(1)
  })
  const { simulation, run } = await world(containers)
  await using _ = simulation
  const given = run({ timeout: { agent: 200_000 } }, { concurrency: 2, containers: 1 })
  await startRun(simulation, given, [
    { ...someTasks(1)[0], timeout: { agent: 2_000 } } as never,
    ...someTasks(2, 1),
  ])
  const rows = await overTime(simulation)
  expect(rows.map(({ outcome, reward }) => [outcome, reward])).toEqual([
    ['agent_timeout', 0],
    ['graded', 1],
    ['graded', 1],
  ])
  expect(containers.aborted).toHaveLength(1)
  expect(containers.opened).toHaveLength(2)
})

test('a grade that could not be taken from its container is no zero, though the policy used up a budget', async () => {
  const containers = containersOf(({ lease: { phase } }) =>
    phase === 'agent'
      ? { report: { kind: 'returned', limit: 'turns' } }
      : { ...returned(1), agentMs: 'none' as never },
  )
  const { simulation, run } = await world(containers)
  await using _ = simulation
  const grade = { kind: 'worker', in: 'world' } as const
  await startRun(simulation, run({ grade, retry: { grade: 0 } }), someTasks(1))
  expect(await overTime(simulation)).toMatchObject([
    { outcome: 'grade_error', valid: false, reward: null },
  ])
})

test('a grader in a container tells by whose fault it gave no verdict', async () => {
  const report = { kind: 'threw' as const, cause: ['the connection broke'] }
  const containers = containersOf(({ lease: { phase, index } }) => {
    if (phase === 'agent') return { report: { kind: 'returned', limit: 'turns' } }
    return index === 0 ? { report, fault: 'platform' as const } : { report }
  })
  const { simulation, run } = await world(containers)
  await using _ = simulation
  const grade = { kind: 'worker', in: 'world' } as const
  await startRun(simulation, run({ grade, retry: { grade: 0 } }), someTasks(2))
  expect(await overTime(simulation)).toMatchObject([
    { outcome: 'grade_error', reward: null },
    { outcome: 'limit', reward: 0 },
  ])
})

test('a container that is silent for a minute while it works is a worker that died', async () => {
  const containers = containersOf(async ({ lease }) =>
    lease.attempt === 1 ? await never() : returned(1),
  )
  const { simulation, run } = await world(containers)
  await using _ = simulation
  await startRun(simulation, run({ timeout: { agent: 600_000 } }), someTasks(1))
  expect(await overTime(simulation, undefined, 1_000)).toMatchObject([
    { outcome: 'graded', attempt: 2 },
  ])
})

test('a function that can’t be loaded pauses the run and says why; resumed, it is tried anew', async () => {
  const containers = containersOf(() => returned(1))
  containers.failure = new SandlotError('function_invalid', 'e.ts can’t be loaded: no')
  const { simulation, run } = await world(containers)
  await using _ = simulation
  await startRun(simulation, run(), someTasks(1))
  await until('it is paused', async () => {
    if (simulation.isIdle) simulation.clock.advance(100)
    const { state, reason } = await simulation.view('a')
    return state === 'paused' && reason === 'e.ts can’t be loaded: no'
  })
  containers.failure = undefined
  await simulation.coordinator.resumeRun('default', 'a')
  expect(await overTime(simulation)).toMatchObject([{ outcome: 'graded' }])
})

test('long tasks are brought as files, and what is left as files is taken', async () => {
  const { digest: blob } = { digest: `sha256:${'a'.repeat(64)}` }
  const containers = containersOf(() => ({
    ...returned(1),
    artifacts: [{ name: 'x', blob, sizeBytes: 1 }],
  }))
  const { simulation, run } = await world(containers)
  await using _ = simulation
  const long = await simulation.engine.blobs.put(Buffer.from('"long"'))
  await startRun(simulation, run(), [{ key: 'long', blob: long.digest }])
  await overTime(simulation)
  const name = (digest: string) => `blob-${digest.replace(':', '-')}`
  expect(containers.brought).toEqual([name(long.digest)])
  expect(containers.collected).toEqual([name(blob)])
})

test('a process can’t come as a worker of it', async () => {
  const { simulation, run } = await world(containersOf(() => returned(1)))
  await using _ = simulation
  await simulation.coordinator.createRun('default', run())
  const request = { run: 'a', worker: 'wk_a', slots: 1, held: [] }
  const attached = simulation.coordinator.attachWorker('default', request, { send() {} })
  await expect(attached).rejects.toMatchObject({ code: 'invalid_request' })
})

test('an image that is not there is refused before anything is started', async () => {
  const { simulation, run } = await world(containersOf(() => returned(1)))
  await using _ = simulation
  const created = simulation.coordinator.createRun('default', {
    ...run(),
    functionImage: 'im_none',
  })
  await expect(created).rejects.toMatchObject({ code: 'image_unknown' })
})

function fail(): never {
  throw new Error('there is none')
}
