import type { Command } from 'commander'
import { oneOf } from './option-values.ts'

/** `sandlot keys …`, `sandlot audit` */
export function addKeyVerbs(program: Command): void {
  program
    .command('audit')
    .description('say who changed what, who connected, and who was refused')
    .option('--since <when>', 'how long ago, as 7d, or a time (default: a day ago)')
    .option('--until <when>', 'likewise (default: now)')
    .option('--key <id>', 'only what this key did')
    .option('--json', 'print JSON')
    .action(async (options) => (await import('./commands/audit.ts')).auditCommand(options))
  const keys = program.command('keys').description('say who may use the daemon, and for what')
  keys
    .command('create')
    .description('create a key; its text is shown this once')
    .requiredOption(
      '--scope <scope>',
      'read: look; run: also start and stop; admin: also remove, and rule keys',
      oneOf('read', 'run', 'admin'),
    )
    .option('--project <name>', 'project that it is for (default: that of your own key)')
    .option('--name <text>', 'what it is for')
    .option('--expires <duration>', 'how long it is good, as 30d (default: until it is revoked)')
    .option('--output <path>', 'write its text to this new file, mode 0600, in place of showing it')
    .option('--json', 'print JSON')
    .action(async (options) => (await import('./commands/keys.ts')).createKeyCommand(options))
  keys
    .command('list')
    .description('list keys, without their texts')
    .option('--json', 'print JSON')
    .action(async (options) => (await import('./commands/keys.ts')).listKeysCommand(options))
  keys
    .command('revoke')
    .description('refuse keys from now on, and end what is connected by them')
    .argument('<id...>', 'ids, as `keys list` shows them')
    .action(async (ids) => (await import('./commands/keys.ts')).revokeKeysCommand(ids))
}
