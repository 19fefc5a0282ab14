/** `sandlot doctor …`. */
import type { Command } from 'commander'
import { collect, positiveNumber, wholeNumber } from './option-values.ts'

const TIMES = 3

export function addDoctorVerbs(program: Command): void {
  const doctor = program
    .command('doctor')
    .description('say what this machine has and lacks, and the command that mends it')
    // `--json` behind a word below is that word's.
    .enablePositionalOptions()
    .option('--deep', 'start a sandbox too')
    .option('--json', 'print JSON')
    .action(async (options) => {
      const { doctorCommand } = await import('./commands/doctor.ts')
      process.exitCode = await doctorCommand(options)
    })
  doctor
    .command('tasks')
    .description(
      'say which tasks are broken, flaky or free points, by trials of their gold solution and of doing nothing',
    )
    .argument('<source...>', 'folders of tasks in Harbor’s format')
    .option('--times <n>', 'trials of each', wholeNumber, TIMES)
    .option('--concurrency <n>', 'trials in flight', wholeNumber)
    .option('--pass <n>', 'from this reward on a task is solved', positiveNumber, 1)
    .option('--reward <name>', 'the reward that counts, where there are several')
    .option('--env <NAME=VALUE>', 'variable that tasks ask for (again for more)', collect)
    .option('--build', 'build the Dockerfile also where a task names an image')
    .option(
      '--allow <host>',
      'a host that tasks with an open network may reach beyond package mirrors (again for more)',
      collect,
    )
    .option('--write <file>', 'write the list of tasks that should not be run as they are')
    .option('--json', 'print JSON')
    .action(async (sources, options) => {
      const { doctorTasksCommand } = await import('./commands/doctor-tasks.ts')
      process.exitCode = await doctorTasksCommand(sources, options)
    })
}
