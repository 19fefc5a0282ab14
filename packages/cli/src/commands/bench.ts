/** `sandlot bench`: measures this machine's Sandlot against the raw runtime, in a process of its own. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { repository } from '../config.ts'
import { note } from '../output/terminal.ts'
import { ensureMachine } from '../setup/machine.ts'

export interface BenchOptions {
  readonly json?: boolean
  readonly samples?: boolean
  readonly long?: boolean
}

/** Returns the exit code: 0 also where a target is missed, which the table says; 1 where something could not be measured. */
export async function benchCommand(
  names: readonly string[],
  options: BenchOptions,
): Promise<number> {
  const { runsc, helper, agent } = await ensureMachine(note)
  const flags = (['json', 'samples', 'long'] as const).filter((flag) => options[flag])
  const argv = [...flags.map((flag) => `--${flag}`), ...names]
  const program = join(repository, 'bench/main.ts')
  const child = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', program, ...argv],
    {
      stdio: 'inherit',
      env: { ...process.env, SANDLOT_RUNSC: runsc, SANDLOT_HELPER: helper, SANDLOT_AGENT: agent },
    },
  )
  // Ctrl-C reaches both: the bench cleans up, and its end is ours.
  const wait = () => {}
  process.on('SIGINT', wait)
  const forward = () => child.kill('SIGTERM')
  process.on('SIGTERM', forward)
  const [code] = (await once(child, 'exit')) as [number | null]
  process.off('SIGINT', wait)
  process.off('SIGTERM', forward)
  return code ?? 1
}
