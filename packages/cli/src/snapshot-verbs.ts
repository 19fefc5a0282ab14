import type { Command } from 'commander'
import { collect } from './option-values.ts'

/** `sandlot sandbox snapshot …` */
export function addSnapshotVerb(sandbox: Command): void {
  sandbox
    .command('snapshot')
    .description('save the files of a sandbox, or its memory too, and print the id of the snapshot')
    .argument('<id>')
    .option('--name <name>', 'the newest snapshot of a name has it')
    .option('--tag <NAME=VALUE>', 'tag (again for more)', collect)
    .option('--memory', 'with its memory: what runs in it goes on in all that start from it')
    .option(
      '--on-restore <command>',
      'with --memory: run this by a shell in all that start from it',
    )
    .option('--exclude <path>', 'leave out what is below this path (again for more)', collect)
    .action(async (id, options) =>
      (await import('./commands/snapshots.ts')).snapshotCommand(id, options),
    )
}

/** `sandlot snapshots …` */
export function addSnapshotVerbs(program: Command): void {
  const snapshots = program
    .command('snapshots')
    .description('work with what was saved of sandboxes')
  snapshots
    .command('list')
    .description('list snapshots')
    .option('-a, --all', 'also those that belong to templates')
    .option('--name <name>', 'only the one of this name')
    .option('--tag <NAME=VALUE>', 'only those with this tag (again for more)', collect)
    .option('--json', 'print JSON')
    .action(async (options) =>
      (await import('./commands/snapshots.ts')).listSnapshotsCommand(options),
    )
  snapshots
    .command('show')
    .description('a snapshot as JSON')
    .argument('<snapshot>', 'id or name')
    .action(async (id) => (await import('./commands/snapshots.ts')).showSnapshotCommand(id))
  snapshots
    .command('delete')
    .description('delete snapshots that nothing uses')
    .argument('<snapshot...>', 'ids or names')
    .option('--force', 'also one in use: what runs goes on, nothing more starts from it')
    .action(async (ids, options) =>
      (await import('./commands/snapshots.ts')).deleteSnapshotsCommand(ids, options),
    )
}
