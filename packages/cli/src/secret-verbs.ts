/** The verbs about secrets. */
import type { Command } from 'commander'

export function addSecretVerbs(program: Command): void {
  const secrets = program
    .command('secrets')
    .description('keep what is put into requests of sandboxes on their way out')
  secrets
    .command('set')
    .description('keep a secret, or another value of it, from standard input or a file')
    .argument('<name>')
    .option('--file <path>', 'read the value from this file')
    .action(async (name, options) =>
      (await import('./commands/secrets.ts')).setSecretCommand(name, options),
    )
  secrets
    .command('list')
    .description('list their names; no value is ever shown')
    .option('--json', 'print JSON')
    .action(async (options) => (await import('./commands/secrets.ts')).listSecretsCommand(options))
  secrets
    .command('delete')
    .description('forget a secret; requests that need it are refused from then on')
    .argument('<name>')
    .action(async (name) => (await import('./commands/secrets.ts')).deleteSecretCommand(name))
}
