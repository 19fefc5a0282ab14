import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Image, Sandlot } from 'sandlot'
import type { Bench, BenchContext } from '../bench.ts'
import { CREATIONS_MAX, openCoordinator, ROOM } from '../coordinator/alone.ts'
import { heapBytes } from '../coordinator/garbage.ts'
import { putTasks } from '../coordinator/put-tasks.ts'
import { countResults } from '../coordinator/results.ts'
import { stopwatch } from '../coordinator/stopwatch.ts'
import { Turnstile } from '../coordinator/turnstile.ts'
import { startWorker } from '../coordinator/worker.ts'
import { BenchDaemon, type DaemonSetting } from '../daemon/daemon.ts'
import { residentBytes } from '../processes.ts'
import { stateDirectory, temporaryDirectory } from '../temporary.ts'

const IN_FLIGHT = 16_000
const TOTAL = 2 * IN_FLIGHT
/** Of those in flight, so many are between two waits. */
const MOVING = 2_000
const WORKERS = 8
const KB = 1_000

/**
 * Twice as many episodes as are in flight: first all in flight wait, then they go as others come. The rate is over all of them,
 * from the first task to the last result. Sandboxes are in memory, the journal is on disk.
 */
export const coordinator: Bench = async (context) => {
  const rates: number[] = []
  const kilobytes: number[] = []
  const processorMs: number[] = []
  const endMs = performance.now() + context.budgetMs / 2
  do {
    const found = await alone(await temporaryDirectory(context))
    rates.push(found.perSecond)
    kilobytes.push(found.bytesEach / KB)
    processorMs.push(found.processorMs)
  } while (performance.now() < endMs)
  const { perSecond, bytesEach } = await throughSdk(context)
  return [
    {
      name: 'coordinator',
      unit: '/s',
      samples: rates,
      target: { of: 'value', atLeast: 3_000 },
      note: `${IN_FLIGHT} in flight, ${WORKERS} workers in this process`,
    },
    {
      name: 'coordinator.sdk',
      unit: '/s',
      samples: [perSecond],
      target: { of: 'value', atLeast: 1_000 },
      note: 'worker by the SDK in another process',
    },
    {
      name: 'coordinator.processor',
      unit: 'ms',
      samples: processorMs,
      note: 'processor time of an episode, all threads; it says the rate on a machine of its own',
    },
    {
      name: 'coordinator.memory',
      unit: 'kB',
      samples: kilobytes,
      target: { of: 'value', atMost: 20 },
      note: 'heap of a waiting episode, its sandbox in memory and its lease counted',
    },
    {
      name: 'coordinator.resident',
      unit: 'kB',
      samples: [bytesEach / KB],
      note: 'growth of the daemon’s resident memory for each waiting episode, garbage counted',
    },
  ]
}

interface Found {
  readonly perSecond: number
  readonly bytesEach: number
}

/** Time and processor time of the same stretches: to look at the heap is in neither. */
async function alone(directory: string): Promise<Found & { readonly processorMs: number }> {
  await using opened = await openCoordinator(directory)
  using workers = new DisposableStack()
  const { coordinator: ours, image } = opened
  const run = 'bench'
  const turnstile = new Turnstile({ inFlight: IN_FLIGHT, moving: MOVING, total: TOTAL })
  const before = heapBytes()
  const filling = stopwatch()
  await ours.createRun('default', {
    name: run,
    kind: 'worker',
    from: image,
    concurrency: IN_FLIGHT,
  })
  await putTasks(ours, run, 0, IN_FLIGHT)
  const slots = IN_FLIGHT / WORKERS
  for (let each = 0; each < WORKERS; each++) {
    workers.use(await startWorker(ours, { run, slots, turnstile }))
  }
  await turnstile.full
  const filled = filling()
  const bytesEach = (heapBytes() - before) / IN_FLIGHT
  const finishing = stopwatch()
  const reading = countResults(ours, run)
  turnstile.open()
  await putTasks(ours, run, IN_FLIGHT, TOTAL)
  await ours.closeRun('default', run)
  const results = await reading
  if (results !== TOTAL) throw new Error(`${results} results of ${TOTAL}`)
  const finished = finishing()
  const elapsedMs = filled.elapsedMs + finished.elapsedMs
  const processorMs = (filled.processorMs + finished.processorMs) / TOTAL
  return { perSecond: TOTAL / (elapsedMs / 1000), bytesEach, processorMs }
}

async function throughSdk(context: BenchContext): Promise<Found> {
  const directory = await temporaryDirectory(context)
  const setting: DaemonSetting = {
    dataDirectory: join(directory, 'data'),
    runDirectory: await stateDirectory(context),
    options: {
      driver: 'fake',
      poolTarget: 0,
      creationsMax: CREATIONS_MAX,
      cpus: ROOM.cpus,
      memoryBytes: ROOM.memoryBytes,
      sandboxesMax: ROOM.sandboxes,
    },
  }
  const daemon = context.scope.use(await BenchDaemon.start(context, setting))
  const client = context.scope.use(new Sandlot(daemon))
  const content = join(directory, 'content')
  await mkdir(content)
  await writeFile(join(content, 'motd'), 'bench\n')
  const { id: from } = await client.images.build(Image.directory(content))
  const turnstile = new Turnstile({ inFlight: IN_FLIGHT, moving: MOVING, total: TOTAL })
  const before = residentBytes(daemon.pid)
  const beginMs = performance.now()
  const run = client.rollouts.map(
    Array.from({ length: TOTAL }, (_, index) => ({ id: index, prompt: 'Write a function.' })),
    async () => {
      await new Promise<void>((go) => turnstile.enter(go))
      return { reward: 1 }
    },
    { from, concurrency: IN_FLIGHT, signal: context.signal },
  )
  const reading = run.wait({ signal: context.signal })
  await Promise.race([turnstile.full, reading])
  const bytesEach = (residentBytes(daemon.pid) - before) / IN_FLIGHT
  turnstile.open()
  const rows = await reading
  const elapsedMs = performance.now() - beginMs
  const wrong = rows.find(({ outcome, reward }) => outcome !== 'graded' || reward !== 1)
  if (rows.length !== TOTAL || wrong) {
    throw new Error(`${rows.length} results of ${TOTAL}; ${wrong?.outcome}: ${wrong?.error}`)
  }
  return { perSecond: TOTAL / (elapsedMs / 1000), bytesEach }
}
