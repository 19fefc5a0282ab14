/** The verbs about what things take: of the past, and of a pool before it is rented. */
import type { Command } from 'commander'
import { naturalNumber, numberFromZero, oneOf, wholeNumber, wholeNumbers } from './option-values.ts'

export function addUsageVerbs(program: Command): void {
  program
    .command('usage')
    .description('say what sandboxes were given, used and cost')
    .option('--since <when>', 'how long ago, as 7d, or a time (default: 30 days ago)')
    .option('--until <when>', 'likewise (default: now)')
    .option(
      '--by <what>',
      'a line for each run, day or project',
      oneOf('run', 'day', 'project'),
      'day',
    )
    .option('--json', 'print JSON')
    .action(async (options) => (await import('./commands/usage.ts')).usageCommand(options))
  addSimulate(program)
}

function addSimulate(program: Command): void {
  program
    .command('simulate')
    .description(
      'try pools of different sizes in simulated time: what a trainer would wait, what would stand idle, and what would balance both',
    )
    .requiredOption('--concurrency <n,…>', 'slots of each pool to try', wholeNumbers)
    .requiredOption(
      '--agent <time>',
      'time of an episode without the model’s: 30s, uniform:1s,5s, exponential:3s (mean), lognormal:30s,1.2 (median, sigma)',
    )
    .option('--tasks <n>', 'tasks, each a group where there are groups', wholeNumber, 256)
    .option('--group <rule>', 'as size=8,extra=2,need=7,cut=p90,maxLag=2')
    .option(
      '--trainer-step <time>',
      'what a step of training takes; without it results are read as they come',
    )
    .option('--batch <n>', 'groups, or results, of a step', wholeNumber, 8)
    .option(
      '--ahead <n>',
      'start no more while so many groups, or results, are not read',
      wholeNumber,
    )
    .option('--model <time>', 'what a call of the model takes')
    .option('--model-calls <n>', 'calls of an episode', wholeNumber, 1)
    .option('--model-slots <n>', 'calls that the model answers at once (default: all)', wholeNumber)
    .option('--model-failures <share>', 'share of the calls that fail', numberFromZero, 0)
    .option('--create <time>', 'what a sandbox takes to come up', '20ms')
    .option(
      '--creating <n>',
      'sandboxes that the machine starts at once (default: all)',
      wholeNumber,
    )
    .option('--capacity <n>', 'sandboxes that the machine has room for (default: all)', wholeNumber)
    .option('--grade <time>', 'what a grade takes')
    .option('--losses <share>', 'share of the attempts whose sandbox is lost', numberFromZero, 0)
    .option('--hedge <after>', 'a second attempt of a sandbox that takes longer: 30s, or p95')
    .option('--longest-first', 'the run is told how long each task will take')
    .option(
      '--hardness <n>',
      'how much more often a slow episode is wrong; 0: not at all',
      numberFromZero,
      0.5,
    )
    .option('--seed <n>', 'another seed, other times', naturalNumber, 1)
    .option('--json', 'print JSON')
    .action(async (options) => (await import('./commands/simulate.ts')).simulateCommand(options))
}
