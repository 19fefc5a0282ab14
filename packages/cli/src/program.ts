/** Every verb with its options; what a verb does stands in `commands/`, loaded when it is called. */
import { Command } from 'commander'

/** The command line, ready to parse. */
export function makeProgram(): Command {
  const program = new Command('sandlot')
    .description('Self-hosted parallel sandboxes for reinforcement-learning rollouts')
    .version('0.1.0')
    .showHelpAfterError('(run `sandlot help` for the verbs)')

  program
    .command('test')
    .description('run the whole suite')
    .argument('[filters...]', 'only test files whose path has one of these')
    .action(async (filters: string[]) => {
      const { testCommand } = await import('./commands/test.ts')
      process.exitCode = await testCommand(filters)
    })

  return program
}
