/** Every verb with its options; what a verb does stands in `commands/`, loaded when it is called. */
import { Command } from 'commander'
import { addBackupVerbs } from './backup-verbs.ts'
import { addDoctorVerbs } from './doctor-verbs.ts'
import { explainErrors } from './explain-errors.ts'
import { addImageVerbs } from './image-verbs.ts'

import { addKeyVerbs } from './key-verbs.ts'
import { addNetworkVerbs, addPolicyOptions } from './network-verbs.ts'

import { collect, naturalNumber, oneOf, portNumber, wholeNumber } from './option-values.ts'
import { addPortForwardVerb, addPortVerbs } from './port-verbs.ts'
import { addQueueVerbs } from './queue-verbs.ts'
import { addResourceOptions } from './resource-verb-options.ts'
import { addRunVerbs } from './run-verbs.ts'
import { addSecretVerbs } from './secret-verbs.ts'
import { addShellVerb } from './shell-verb.ts'
import { addSnapshotVerb, addSnapshotVerbs } from './snapshot-verbs.ts'
import { addUsageVerbs } from './usage-verbs.ts'

/** The command line, ready to parse. */
export function makeProgram(): Command {
  const program = new Command('sandlot')
    .description('Self-hosted parallel sandboxes for reinforcement-learning rollouts')
    .version('0.1.0')
    .enablePositionalOptions()
    // A command line that can't be parsed is thrown: the exit code is the caller's to choose.
    .exitOverride()
  addDaemonVerbs(program)
  addSandboxVerbs(program)
  addPortForwardVerb(program)
  addImageVerbs(program)
  addSnapshotVerbs(program)
  addTemplateVerbs(program)
  addRunVerbs(program)
  addQueueVerbs(program)
  addSecretVerbs(program)
  addUsageVerbs(program)
  addKeyVerbs(program)
  addDevelopmentVerbs(program)
  explainErrors(program)
  return program
}

function addDaemonVerbs(program: Command): void {
  program
    .command('demo')
    .description(
      "run HumanEval's 164 tasks by three scripted policies, each episode in its own sandbox",
    )
    .option('--tasks <n>', 'only the first so many tasks', wholeNumber)
    .option(
      '--concurrency <n>',
      'episodes in flight of each policy (default: the number of cores)',
      wholeNumber,
    )
    .option('--json', 'print one JSON object')
    .action(async (options) => {
      const { demoCommand } = await import('./commands/demo.ts')
      process.exitCode = await demoCommand(options)
    })
  program
    .command('serve')
    .description('run the daemon in the foreground; Ctrl-C drains, a second one stops at once')
    .option('--host <address>', 'address to listen on')
    .option('--port <n>', 'port to listen on; 0 picks one', portNumber)
    .option('--data-directory <path>', 'where everything durable is kept')
    .option('--run-directory <path>', 'where running sandboxes have their sockets and pipes')
    .option('--tls-cert <path>', 'PEM file of a certificate with its chain; with --tls-key')
    .option('--tls-key <path>', 'PEM file of its key')
    .option('--pool <n>', 'blank sandboxes to keep ready', naturalNumber)
    .option(
      '--attached',
      'print the address as a line of JSON, and drain when standard input is closed',
    )
    .action(async (options) => {
      const { serveCommand } = await import('./commands/serve.ts')
      process.exitCode = await serveCommand(options)
    })
  addDoctorVerbs(program)
  addBackupVerbs(program)
  program
    .command('setup')
    .description(
      'bring all that the daemon needs and start nothing; nothing needs the network later',
    )
    .action(async () => (await import('./commands/setup.ts')).setupCommand())
}

function addSandboxVerbs(program: Command): void {
  program
    .command('ps')
    .description('list the sandboxes that live')
    .option('-a, --all', 'also those that ended a short while ago')
    .option('--json', 'print JSON')
    .action(async (options) => (await import('./commands/sandboxes.ts')).psCommand(options))
  const sandbox = program
    .command('sandbox')
    .description('work with one sandbox')
    .enablePositionalOptions()
  const create = sandbox
    .command('create')
    .description('start a sandbox and print its id')
    .requiredOption(
      '--from <start>',
      'an id or name, snapshot:NAME, template:NAME, debian:SUITE[,PACKAGE…], registry:NAME, or dockerfile:, directory:, tar: or oci:PATH',
    )
  addResourceOptions(create)
    .option('--env <NAME=VALUE>', 'environment variable (again for more)', collect)
    .option('--keep-warm <duration>', 'how long it lives unused (default: 10 minutes)')
    .option('--lifetime <duration>', 'how long it lives at most (default: no bound)')
    .option('--open-network', 'an interface of its own, by which it reaches every public address')
    .option('--gpu <gpu>', 'GPUs of its own: MODEL, any, N, or MODEL:N')
    .option(
      '--secret <VARIABLE=NAME@HOST[,HOST]>',
      'a secret for requests to these hosts; commands see a placeholder (again for more)',
      collect,
    )
    .option('--tag <NAME=VALUE>', 'tag (again for more)', collect)
    .option('--checkpointable', 'its memory can be saved: pause, fork, memory snapshots')
    .option('--or-cold', 'start from the files of a memory snapshot that can’t be restored here')
  addPolicyOptions(create).action(async (options) =>
    (await import('./commands/sandboxes.ts')).createCommand(options),
  )
  sandbox
    .command('show')
    .description('a sandbox as JSON: its state, limits and use, and what its network policy allows')
    .argument('<id>')
    .action(async (id) => (await import('./commands/sandboxes.ts')).showCommand(id))
  sandbox
    .command('exec')
    .description('run a command; its exit code is ours')
    .argument('<id>')
    .argument('<command...>', 'the program and its arguments, also after `--`')
    .option('--env <NAME=VALUE>', 'environment variable (again for more)', collect)
    .option('--cwd <path>', 'working directory')
    .option('--user <user>', 'name, or uid[:gid]')
    .option('--timeout <duration>', 'kill it with all it started after so long')
    .passThroughOptions()
    .action(async (id, argv, options) => {
      const { execCommand } = await import('./commands/sandboxes.ts')
      const command = argv[0] === '--' ? argv.slice(1) : argv
      process.exitCode = await execCommand(id, command, options)
    })
  addPortVerbs(sandbox)
  addShellVerb(sandbox)
  sandbox
    .command('stop')
    .description('stop sandboxes with all that runs in them')
    .argument('<id...>')
    .action(async (ids) => (await import('./commands/sandboxes.ts')).stopCommand(ids))
  addFileVerbs(sandbox)
  addMemoryVerbs(sandbox)
  addNetworkVerbs(sandbox)
  addSnapshotVerb(sandbox)
  sandbox
    .command('logs')
    .description('list the commands of a sandbox, or print the output of one')
    .argument('<id>')
    .option('--exec <exec>', 'the command whose output to print')
    .action(async (id, options) =>
      (await import('./commands/sandboxes.ts')).logsCommand(id, options),
    )
}

function addFileVerbs(sandbox: Command): void {
  sandbox
    .command('file-url')
    .description('print a URL by which anybody reads a file for a while, without a key')
    .argument('<id>')
    .argument('<path>', 'path in the sandbox')
    .option('--upload', 'one that writes the file: `curl -T FILE URL`')
    .option('--expires <duration>', 'how long it is good, at most 7d (default: 10m)')
    .action(async (id, path, options) =>
      (await import('./commands/file-url.ts')).fileUrlCommand(id, path, options),
    )
}

function addMemoryVerbs(sandbox: Command): void {
  sandbox
    .command('pause')
    .description(
      'save the memory of sandboxes to disk, and take nothing of the machine until they are resumed',
    )
    .argument('<id...>')
    .action(async (ids) => (await import('./commands/sandboxes.ts')).pauseCommand(ids))
  sandbox
    .command('fork')
    .description('make copies of a sandbox, and print their ids')
    .argument('<id>')
    .option('--count <n>', 'how many', wholeNumber, 1)
    .option(
      '--kind <kind>',
      'memory: what runs goes on in each; filesystem: the files alone, of any sandbox',
      oneOf('memory', 'filesystem'),
      'memory',
    )
    .option('--on-restore <command>', 'run this by a shell in each copy of the memory')
    .action(async (id, options) => {
      const { forkCommand } = await import('./commands/sandboxes.ts')
      process.exitCode = await forkCommand(id, options)
    })
  sandbox
    .command('resume')
    .description('let paused sandboxes go on')
    .argument('<id...>')
    .action(async (ids) => (await import('./commands/sandboxes.ts')).resumeCommand(ids))
}

function addTemplateVerbs(program: Command): void {
  const templates = program.command('templates').description('work with prepared environments')
  templates
    .command('list')
    .description('list templates')
    .option('--name <name>', 'only the one of this name')
    .option('--tag <NAME=VALUE>', 'only those with this tag (again for more)', collect)
    .option('--json', 'print JSON')
    .action(async (options) =>
      (await import('./commands/templates.ts')).listTemplatesCommand(options),
    )
  templates
    .command('show')
    .description('a template as JSON')
    .argument('<template>', 'id or name')
    .action(async (id) => (await import('./commands/templates.ts')).showTemplateCommand(id))
  templates
    .command('delete')
    .description('forget a template; what runs from it goes on')
    .argument('<template>', 'id or name')
    .action(async (id) => (await import('./commands/templates.ts')).deleteTemplateCommand(id))
}

function addDevelopmentVerbs(program: Command): void {
  program
    .command('bench')
    .description(
      'measure this machine against the raw runtime; bench/README.md says how to read it',
    )
    .argument('[names...]', 'only these benches (an unknown name lists them all)')
    .option('--json', 'print one JSON object')
    .option('--samples', 'with --json, the raw samples too')
    .option('--long', 'take more time, for steadier figures, and run what takes minutes')
    .action(async (names: string[], options) => {
      const { benchCommand } = await import('./commands/bench.ts')
      process.exitCode = await benchCommand(names, options)
    })
  program
    .command('test')
    .description('run the whole suite')
    .argument('[filters...]', 'only test files whose path has one of these')
    .action(async (filters: string[]) => {
      const { testCommand } = await import('./commands/test.ts')
      process.exitCode = await testCommand(filters)
    })
}
