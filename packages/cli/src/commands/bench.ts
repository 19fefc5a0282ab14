/** `sandlot bench`: measures this machine's Sandlot against the raw runtime, in a process of its own. */
import { join } from 'node:path'
import { execPath } from 'node:process'
import { execa } from 'execa'
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
  const child = execa(execPath, ['--disable-warning=ExperimentalWarning', program, ...argv], {
    stdio: 'inherit',
    reject: false,
    env: { SANDLOT_RUNSC: runsc, SANDLOT_HELPER: helper, SANDLOT_AGENT: agent },
  })
  // Ctrl-C reaches both: the bench cleans up, and its end is ours.
  const wait = () => {}
  const forward = () => void child.kill('SIGTERM')
  process.on('SIGINT', wait)
  process.on('SIGTERM', forward)
  const { exitCode } = await child
  process.off('SIGINT', wait)
  process.off('SIGTERM', forward)
  return exitCode ?? 1
}
