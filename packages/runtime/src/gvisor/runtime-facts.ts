import { basename } from 'node:path'
import { DriverError } from '../driver.ts'
import { RUNTIME_LIMITS } from '../limits.ts'
import { run } from '../process/run.ts'

/** What a checkpoint depends on, of this machine. */
export interface RuntimeFacts {
  readonly runtime: string
  readonly cpuFeatures: string
  readonly agent: string
}

/** Asks the runtime. `agentImage` is named after its content. */
export async function runtimeFacts(runsc: string, agentImage: string): Promise<RuntimeFacts> {
  const [version, cpuFeatures] = await Promise.all([
    say(runsc, '--version'),
    say(runsc, 'cpu-features'),
  ])
  const runtime = /version (\S+)/.exec(version)?.[1] ?? version
  return { runtime, cpuFeatures, agent: basename(agentImage, '.erofs') }
}

async function say(runsc: string, argument: string): Promise<string> {
  const outcome = await run(runsc, [argument], { timeoutMs: RUNTIME_LIMITS.runtimeFactsMs })
  if (outcome.exitCode === 0) return outcome.stdout.trim()
  throw new DriverError('unsupported', `${runsc} ${argument}: ${outcome.problem}`, {
    hint: 'run `sandlot doctor`',
  })
}
