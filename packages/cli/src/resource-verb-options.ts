import type { Command } from 'commander'
import { positiveNumber, wholeNumber } from './option-values.ts'

/** What a sandbox may use, GPUs apart. */
export function addResourceOptions(command: Command): Command {
  return command
    .option('--memory <size>', 'memory limit, such as 512MiB')
    .option('--cpu <n>', 'processors, may be a fraction', positiveNumber)
    .option(
      '--disk <size>',
      'size of the writable layer; on the machine’s disk where it is more than three quarters of the memory',
    )
    .option('--pids <n>', 'processes at once', wholeNumber)
    .option('--pids-per-user <n>', 'processes at once of each user', wholeNumber)
    .option('--open-files <n>', 'files that one process has open at once', wholeNumber)
    .option('--file-size <size>', 'the largest file that may be written')
}
