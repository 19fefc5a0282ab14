/** `sandlot doctor …`. */
import type { Command } from 'commander'
import { positiveNumber, wholeNumber } from './option-values.ts'
import { addGrade, addTaskOptions, addWhat } from './start-run-verb.ts'

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
    .command('leaks')
    .description(
      'say what sandboxes left on this machine that nobody owns, and remove it on request',
    )
    .option('--remove', 'remove what is left; nothing of a daemon that runs is touched')
    .option('--waiting', 'with --remove, end sandboxes too that wait for their daemon')
    .option('--run-directory <path>', 'only what daemons of this run directory have')
    .option('--data-directory <path>', 'where a daemon keeps what is durable')
    .option('--json', 'print JSON')
    .action(async (options) => {
      const { doctorLeaksCommand } = await import('./commands/doctor-leaks.ts')
      process.exitCode = await doctorLeaksCommand(options)
    })
  const tasks = doctor
    .command('tasks')
    .description(
      'say which tasks are broken, flaky or free points, by trials of their gold solution and of doing nothing',
    )
    .argument(
      '<source...>',
      'folders of tasks in Harbor’s format, or files with one JSON object a line whose `sandlot` has a command `gold`, and perhaps `null`',
    )
    .option('--times <n>', 'trials of each', wholeNumber, TIMES)
    .option('--concurrency <n>', 'trials in flight (default: 16)', wholeNumber)
    .option('--pass <n>', 'from this reward on a task is solved', positiveNumber, 1)
    .option('--reward-name <name>', 'the reward that counts, where there are several')
    .option('--write <file>', 'write the list of tasks that should not be run as they are')
    .option('--json', 'print JSON')
  addTaskOptions(tasks)
  addWhat(tasks)
  addGrade(tasks)
  tasks.action(async (sources, options) => {
    const { doctorTasksCommand } = await import('./commands/doctor-tasks.ts')
    process.exitCode = await doctorTasksCommand(sources, options)
  })
}
