/** `sandlot runs …` and `sandlot episode`. */
import { EPISODE_STATES, OUTCOMES, RUN_STATES } from '@sandlot/protocol'
import type { Command } from 'commander'
import { oneOf, wholeNumber } from './option-values.ts'
import { addStartRunVerb } from './start-run-verb.ts'

export function addRunVerbs(program: Command): void {
  const runs = program.command('runs').description('work with runs')
  addStartRunVerb(runs)
  runs
    .command('list')
    .description('list runs, the newest first')
    .option('--state <state>', `only those that are ${RUN_STATES.join(', ')}`, oneOf(...RUN_STATES))
    .option('--json', 'print JSON')
    .action(async (options) => (await import('./commands/runs.ts')).listRunsCommand(options))
  runs
    .command('show')
    .description("a run's report: throughput, outcomes, latency per phase, what limits it")
    .argument('<name>')
    .option('--json', 'print JSON')
    .action(async (name, options) =>
      (await import('./commands/runs.ts')).showRunCommand(name, options),
    )
  runs
    .command('watch')
    .description('follow a run until it is over; Ctrl-C leaves it, and it goes on')
    .argument('<name>')
    .action(async (name) => (await import('./commands/watch-run.ts')).watchRunCommand(name))
  addReadingVerbs(runs)
  const verbs = {
    cancel: ['end all episodes that are not over', 'cancelRunCommand'],
    pause: ['start no more attempts', 'pauseRunCommand'],
    resume: ['go on', 'resumeRunCommand'],
    delete: ['delete a finished run with its results', 'deleteRunCommand'],
  } as const
  for (const [verb, [description, handler]] of Object.entries(verbs)) {
    runs
      .command(verb)
      .description(description)
      .argument('<name>')
      .action(async (name) => (await import('./commands/runs.ts'))[handler](name))
  }
  program
    .command('episode')
    .description('why an episode is late, or failed: where it stands, its attempts, what it left')
    .argument('<run>', 'name of the run; not needed with the id of an episode')
    .argument('[key]', 'key of the episode’s task, or its id')
    .option('--json', 'print JSON')
    .action(async (run, key, options) =>
      (await import('./commands/episode.ts')).episodeCommand(run, key, options),
    )
}

function addReadingVerbs(runs: Command): void {
  runs
    .command('results')
    .description('print results as they complete, one JSON row a line, until the run is over')
    .argument('<name>')
    .option('--from <cursor>', 'only rows after this cursor')
    .option('--now', 'end with the last row that is there now')
    .option(
      '--format <format>',
      'jsonl: one JSON row a line (default); parquet, with --output: a table',
      oneOf('jsonl', 'parquet'),
    )
    .option(
      '--output <file>',
      'write them to this file, which is there when all of them are; stopped in between, the same command goes on',
    )
    .action(async (name, options) =>
      (await import('./commands/results.ts')).resultsCommand(name, options),
    )
  runs
    .command('episodes')
    .description('list the episodes of a run: those that are not done, then the others')
    .argument('<name>')
    .option('--state <state>', `only those: ${EPISODE_STATES.join(', ')}`, oneOf(...EPISODE_STATES))
    .option('--outcome <outcome>', 'only those that ended so', oneOf(...OUTCOMES))
    .option('--limit <n>', 'the first so many (default: 100)', wholeNumber)
    .option('--json', 'print JSON')
    .action(async (name, options) =>
      (await import('./commands/episodes.ts')).listEpisodesCommand(name, options),
    )
  runs
    .command('artifacts')
    .description('list what an episode left (its log, files it kept), or print one of it')
    .argument('<name>')
    .argument('<key>', 'key of the episode’s task, or its id')
    .argument('[artifact]', 'print this one')
    .action(async (name, key, artifact) =>
      (await import('./commands/artifacts.ts')).artifactsCommand(name, key, artifact),
    )
}
