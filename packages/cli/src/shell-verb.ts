import type { Command } from 'commander'
import { collect } from './option-values.ts'

/** `sandlot sandbox shell`. */
export function addShellVerb(sandbox: Command): void {
  sandbox
    .command('shell')
    .description('work in it by this terminal; ~. at the beginning of a line leaves it running')
    .argument('<id>')
    .argument('[command...]', 'in place of the shell, after `--`')
    .option('--attach <terminal>', 'take over a terminal that is there')
    .option('--list', 'list its terminals')
    .option('--kill <terminal>', 'end a terminal with all that runs in it')
    .option('--env <NAME=VALUE>', 'environment variable (again for more)', collect)
    .option('--cwd <path>', 'working directory')
    .option('--user <user>', 'name, or uid[:gid]')
    .option('--term <name>', 'what the terminal is told to be (default: TERM of this one)')
    .action(async (id, argv, options) => {
      const { shellCommand } = await import('./commands/shell.ts')
      process.exitCode = await shellCommand(id, argv, options)
    })
}
