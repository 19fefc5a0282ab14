import type { Command } from 'commander'

/** `sandlot queues …` */
export function addQueueVerbs(program: Command): void {
  const queues = program
    .command('queues')
    .description('look at task queues, and at tasks that failed for good')
  queues
    .command('list')
    .description('list queues: what waits, what runs, and in how many containers')
    .option('-a, --all', 'also those of functions that are called')
    .option('--json', 'print JSON')
    .action(async (options) => (await import('./commands/queues.ts')).listQueuesCommand(options))
  queues
    .command('show')
    .description('a queue as JSON')
    .argument('<name>')
    .action(async (name) => (await import('./commands/queues.ts')).showQueueCommand(name))
  queues
    .command('dead')
    .description('list the tasks of a queue that failed after their last retry')
    .argument('<name>')
    .option('--json', 'print one JSON object a line, with inputs and stacks')
    .action(async (name, options) =>
      (await import('./commands/queues.ts')).deadLettersCommand(name, options),
    )
  queues
    .command('replay')
    .description('put dead letters back into their queue: these, or all')
    .argument('<name>')
    .argument('[task...]', 'ids, as `queues dead` shows them')
    .action(async (name, tasks) =>
      (await import('./commands/queues.ts')).replayCommand(name, tasks),
    )
  queues
    .command('delete')
    .description('delete queues with their tasks, results and dead letters')
    .argument('<name...>')
    .action(async (names) => (await import('./commands/queues.ts')).deleteQueuesCommand(names))
}
