import type { Command } from 'commander'

/** `sandlot backup`, `sandlot restore-backup`. */
export function addBackupVerbs(program: Command): void {
  program
    .command('backup')
    .description('save everything durable of the daemon to a file, while it serves')
    .argument('<file>', 'a new file, or - for standard output')
    .option('--images', 'with images and saved memory; without, they have to be made again')
    .action(async (path, options) => {
      const { backupCommand } = await import('./commands/backup.ts')
      await backupCommand(path, options)
    })
  program
    .command('restore-backup')
    .description('make a data directory of a backup; no daemon is asked, and nothing is replaced')
    .argument('<file>', 'what `sandlot backup` wrote')
    .requiredOption('--data-directory <path>', 'a new directory, or an empty one')
    .action(async (path, options) => {
      const { restoreBackupCommand } = await import('./commands/backup.ts')
      await restoreBackupCommand(path, options)
    })
}
