import { spawn } from 'node:child_process'
import { basename, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Bench, BenchContext } from '../bench.ts'
import { repository } from '../config.ts'
import { Api } from '../daemon/api.ts'
import { BenchDaemon, daemonSetting } from '../daemon/daemon.ts'
import { poolFull } from '../daemon/pool.ts'
import { openDriver } from '../driver.ts'
import { detectCgroups } from '../inside.ts'
import { proportionalBytes, residentBytes } from '../processes.ts'
import { median } from '../statistics.ts'

const MB = 1e6
const BLANKS = 10
/** An agent has prepared its world, and what starting left in memory is given back. */
const SETTLE_MS = 3_000
const LOOKS = 5
const LOOK_MS = 1_000

export const memory: Bench = async (context) => {
  const blank = await blankMegabytes(context)
  const daemon = await daemonMegabytes(context)
  return [
    {
      name: 'memory.blank',
      unit: 'MB',
      samples: blank,
      target: { of: 'value', atMost: 12 },
      note: `proportional set size of all host processes of a blank, ${BLANKS} alive`,
    },
    {
      name: 'memory.daemon',
      unit: 'MB',
      samples: daemon,
      target: { of: 'value', atMost: 150 },
      note: 'resident memory of `sandlot serve`, idle, its pool full',
    },
  ]
}

async function blankMegabytes(context: BenchContext): Promise<readonly number[]> {
  const { driver, stateDirectory } = await openDriver(context)
  const cgroups = detectCgroups(basename(stateDirectory))
  const blanks = await Promise.all(
    Array.from({ length: BLANKS }, () => driver.createBlank({ signal: context.signal })),
  )
  await delay(SETTLE_MS, undefined, { signal: context.signal })
  const samples = blanks.map(async ({ hostId }) => {
    const pids = (await cgroups?.leaf(hostId).processes()) ?? []
    return pids.reduce((sum, pid) => sum + proportionalBytes(pid), 0) / MB
  })
  const all = await Promise.all(samples)
  if (median(all) === 0) throw new Error('no process of a blank was found')
  await Promise.all(blanks.map((blank) => driver.stop(blank)))
  return all
}

async function daemonMegabytes(context: BenchContext): Promise<readonly number[]> {
  const { dataDirectory, runDirectory } = await daemonSetting(context, {})
  const directories = ['--data-directory', dataDirectory, '--run-directory', runDirectory]
  const argv = ['serve', '--attached', '--port', '0', ...directories]
  // The script replaces itself by the daemon: its pid is the daemon's.
  const child = spawn(join(repository, 'sandlot'), argv, { stdio: ['pipe', 'pipe', 'ignore'] })
  const daemon = context.scope.use(await BenchDaemon.announced(context, child))
  using api = new Api(daemon)
  await poolFull(api, context)
  await delay(SETTLE_MS, undefined, { signal: context.signal })
  const samples: number[] = []
  for (let look = 0; look < LOOKS; look++) {
    await delay(LOOK_MS, undefined, { signal: context.signal })
    samples.push(residentBytes(daemon.pid) / MB)
  }
  return samples
}
