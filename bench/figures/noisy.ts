import { type Sandbox, Sandlot, SandlotError } from 'sandlot'
import type { Bench, BenchContext } from '../bench.ts'
import { BenchDaemon, daemonSetting } from '../daemon/daemon.ts'
import { interleave } from '../interleave.ts'
import { TRUE_COMMAND } from '../spec.ts'
import { quantile } from '../statistics.ts'

const GOOD = 6
const WINDOW_MS = 4_000
const TRIPS = 100
const POOL = 4
const RESOURCES = {
  cpu: { request: 0.1, limit: 2 },
  memory: { request: '20MiB', limit: '256MiB' },
  disk: '48MiB',
  pids: 64,
} as const

/** What a good episode runs: it computes for some 50 ms. */
const WORK = ['python3', '-c', 'sum(n * n for n in range(200000))']

const FORK_BOMB = [
  'python3',
  '-c',
  'import os\nwhile True:\n  try: os.fork()\n  except OSError: pass',
]
const MEMORY_HOG = [
  'python3',
  '-c',
  "kept = []\nwhile True: kept.append(bytearray(b'x') * (4 << 20))",
]
const DISK_FILLER = 'while :; do cat /dev/zero >/fill 2>/dev/null; rm -f /fill; done'
const FLOOD = 'exec yes'
const NOISE = [FORK_BOMB, MEMORY_HOG, DISK_FILLER, FLOOD]

/**
 * Six good episodes at a time beside one fork bomb, one memory hog, one disk filler and one flood of output. All ten want the whole
 * machine and weigh the same, so a fair share of the good ones is 6/10 of what they do alone.
 */
export const noisy: Bench = async (context) => {
  const { id: from } = await context.image()
  const setting = await daemonSetting(context, { poolTarget: POOL })
  const daemon = context.scope.use(await BenchDaemon.start(context, setting))
  const client = context.scope.use(new Sandlot(daemon))
  const create = () => client.sandboxes.create({ from, resources: RESOURCES })
  const episodes = await interleave(
    context,
    { max: 5, share: 0.6 },
    {
      quiet: () => goodPerSecond(create, context),
      noisy: () => beside(NOISE, create, () => goodPerSecond(create, context)),
    },
  )
  const asked = await create()
  const trips = await interleave(
    context,
    { max: 5, share: 0.4 },
    {
      quiet: () => slowestTrip(asked),
      noisy: () => besideGibibytes(create, () => slowestTrip(asked)),
    },
  )
  await asked.stop()
  return [
    {
      name: 'noisy',
      unit: '/s',
      samples: episodes.noisy,
      reference: episodes.quiet.map((rate) => (rate * GOOD) / (GOOD + NOISE.length)),
      target: { of: 'ratio', atLeast: 0.8 },
      note: `good episodes beside four hostile ones; the reference is their fair share, ${GOOD}/${GOOD + NOISE.length} of what they do alone`,
    },
    {
      name: 'noisy.exec',
      unit: 'ms',
      samples: trips.noisy,
      reference: trips.quiet,
      target: { of: 'ratio', atMost: 3 },
      note: `p99 of ${TRIPS} round trips of \`true\` while a neighbour prints a gibibyte after the other; the reference is the same alone`,
    },
  ]
}

/** Whole episodes: a sandbox, what it computes, its end. */
async function goodPerSecond(
  create: () => Promise<Sandbox>,
  { signal }: BenchContext,
): Promise<number> {
  const startedMs = performance.now()
  let done = 0
  const lane = async () => {
    while (performance.now() - startedMs < WINDOW_MS) {
      signal.throwIfAborted()
      await using sandbox = await create()
      const { exitCode } = await sandbox.exec(WORK)
      if (exitCode !== 0) throw new Error(`a good episode ended with ${exitCode}`)
      done++
    }
  }
  await Promise.all(Array.from({ length: GOOD }, lane))
  return done / ((performance.now() - startedMs) / 1000)
}

/** Each of the commands in a sandbox of its own, again and again, while `work` is done. */
async function beside<T>(
  commands: readonly (string | readonly string[])[],
  create: () => Promise<Sandbox>,
  work: () => Promise<T>,
): Promise<T> {
  const over = new AbortController()
  const { signal } = over
  const neighbours = commands.map(async (command) => {
    while (!signal.aborted) {
      await using sandbox = await create()
      try {
        await sandbox.exec(command, { signal })
      } catch (error) {
        // A hog dies of its memory, and the others are stopped when it is over.
        if (!signal.aborted && !(error instanceof SandlotError)) throw error
      }
    }
  })
  try {
    return await work()
  } finally {
    over.abort(new Error('enough'))
    await Promise.allSettled(neighbours)
  }
}

async function besideGibibytes<T>(
  create: () => Promise<Sandbox>,
  work: () => Promise<T>,
): Promise<T> {
  return await beside(['head -c 1G /dev/zero'], create, work)
}

async function slowestTrip(sandbox: Sandbox): Promise<number> {
  const trips: number[] = []
  for (let trip = 0; trip < TRIPS; trip++) {
    const startedMs = performance.now()
    await sandbox.exec(TRUE_COMMAND)
    trips.push(performance.now() - startedMs)
  }
  return quantile(trips, 0.99)
}
