import { execFile } from 'node:child_process'
import { availableParallelism, cpus, loadavg, release, totalmem } from 'node:os'
import { promisify } from 'node:util'
import { gvisorOptions } from '@sandlot/runtime'
import { detectCgroups } from './inside.ts'

/** The shape of the machine that the absolute figures belong to. */
export interface Machine {
  readonly processors: number
  readonly processor: string
  readonly memoryBytes: number
  readonly kernel: string
  readonly cgroups: 'v1' | 'v2' | 'none'
  readonly node: string
  readonly runsc: string
  /** Averages over 1, 5 and 15 minutes when the bench began. */
  readonly load: readonly number[]
  readonly at: string
}

export async function describeMachine(): Promise<Machine> {
  const version = detectCgroups('sandlot-bench')?.version
  return {
    processors: availableParallelism(),
    processor: cpus()[0]?.model ?? 'unknown',
    memoryBytes: totalmem(),
    kernel: release(),
    cgroups: version ? `v${version}` : 'none',
    node: process.version,
    runsc: await runscVersion(),
    load: loadavg(),
    at: new Date().toISOString(),
  }
}

async function runscVersion(): Promise<string> {
  const run = promisify(execFile)(gvisorOptions().runsc, ['--version'], { timeout: 10_000 })
  const { stdout } = await run.catch(() => ({ stdout: '' }))
  return /version (\S+)/.exec(stdout)?.[1] ?? 'none'
}
