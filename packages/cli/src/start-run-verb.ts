import type { Command } from 'commander'
import { collect, keptOf, naturalNumber, oneOf, wholeNumber } from './option-values.ts'
import { addResourceOptions } from './resource-verb-options.ts'

/** `sandlot runs start` */
export function addStartRunVerb(runs: Command): void {
  const start = runs
    .command('start')
    .description(
      'run a command for each task, in a sandbox of its own; the daemon does it, whoever is there',
    )
    .argument(
      '[tasks]',
      'a file with one JSON object a line, or - for standard input; `id` is a task’s key, `sandlot` what it has of its own',
    )
    .option(
      '--command <command>',
      'the episode, run by a shell; it finds its task in $SANDLOT_TASK_FILE',
    )
  addFunction(start)
  addHarbor(start)
  addWhat(start)
  addGrade(start)
  addHow(start)
  start
    .option(
      '--quarantine <file>',
      'don’t run what `sandlot doctor tasks --write` has listed: its rows are task_invalid',
    )
    .option(
      '--missing-from <run>',
      'run only the tasks that this run, which is over, has no valid result of (again for more runs)',
      collect,
    )
    .option('--watch', 'follow it until it is over, and print its report (default on a terminal)')
    .option('--detach', 'end when the tasks are submitted (default elsewhere)')
    .action(async (file, options) =>
      (await import('./commands/start-run.ts')).startRunCommand(file, options),
    )
}

function addFunction(start: Command): void {
  start
    .option(
      '--function <FILE#EXPORT>',
      'in place of --command: a function of a module, which containers of the daemon call (without #EXPORT the default one)',
    )
    .option(
      '--function-allow <host>',
      'a host that those containers may reach, such as the model’s (again for more)',
      collect,
    )
    .option(
      '--function-secret <VARIABLE=NAME@HOST[,HOST]>',
      'a secret for their requests to these hosts; the function sees a placeholder (again for more)',
      collect,
    )
    .option(
      '--grade-function <FILE#EXPORT>',
      'with --function: grade by a function, in the same containers',
    )
}

function addHarbor(start: Command): void {
  start
    .option(
      '--harbor <folder...>',
      'in place of a file: task folders in Harbor’s format, or folders of them',
    )
    .option(
      '--agent <agent>',
      'with --harbor: oracle runs a task’s solution, nop does nothing, else a command that finds what it is asked in $INSTRUCTION',
    )
  addTaskOptions(start)
}

/** How task folders are read. */
export function addTaskOptions(verb: Command): void {
  verb
    .option(
      '--task-env <NAME=VALUE>',
      'variable that task folders ask for (again for more)',
      collect,
    )
    .option('--build', 'build the Dockerfile also where a task folder names an image')
}

/** What a sandbox is made of, and what it may reach. */
export function addWhat(start: Command): void {
  start
    .option('--from <start>', 'what each sandbox starts from, as for `sandlot sandbox create`')
    .option('--setup <command>', 'run this before the episode (again for more)', collect)
    .option('--file <PATH=FILE>', 'bring FILE to PATH before the episode (again for more)', collect)
    .option('--env <NAME=VALUE>', 'environment variable (again for more)', collect)
  addResourceOptions(start)
    .option('--model <url>', 'a model that the episode finds at $SANDLOT_MODEL_URL')
    .option('--allow <host>', 'a host that set-up and episode may reach (again for more)', collect)
    .option('--packages', 'let set-up and episode reach the package mirrors of the machine')
    .option(
      '--secret <VARIABLE=NAME@HOST[,HOST]>',
      'a secret for requests to these hosts; commands see a placeholder (again for more)',
      collect,
    )
    .option('--open-network', 'sandboxes reach every public address, by interfaces of their own')
    .option('--gpu <gpu>', 'GPUs of each sandbox: MODEL, any, N, or MODEL:N')
}

export function addGrade(start: Command): void {
  start
    .option('--grade <command>', 'grade what the episode left by this, run by a shell')
    .option(
      '--reward <place>',
      'where the verdict is, of the grader or else of the command: exit (default), stdout, or file:PATH',
    )
    .option(
      '--grade-in <place>',
      'world (default): the episode’s files; clean: the image alone; same: its processes too',
      oneOf('world', 'clean', 'same'),
    )
    .option(
      '--grade-file <PATH=FILE>',
      'bring FILE to PATH for the grader alone (again for more)',
      collect,
    )
}

function addHow(start: Command): void {
  start
    .option('--name <name>', 'name of the run; the same name again attaches to it')
    .option('--concurrency <n>', 'episodes in flight (default: 16)', wholeNumber)
    .option(
      '--timeout <PHASE=DURATION>',
      'how long a phase may take; a duration alone is the agent’s (again for more)',
      collect,
    )
    .option('--group <n>', 'run each task so many times, compared with one another', wholeNumber)
    .option('--seed <n>', 'what the seeds of its episodes are made from', naturalNumber)
    .option(
      '--artifact <pattern>',
      'keep the files of each sandbox that match, such as /work/out/*.json (again for more)',
      collect,
    )
    .option(
      '--keep <what>',
      'keep the files of sandboxes whose episodes failed: on-failure, or so many; always: of any',
      keptOf,
    )
    .option('--retain <duration>', 'delete the run so long after its end, such as 30d')
    .option('--tag <NAME=VALUE>', 'tag (again for more)', collect)
    .option(
      '--if-exists <what>',
      'attach to a finished run of this name, or replace it',
      oneOf('attach', 'replace'),
    )
}
