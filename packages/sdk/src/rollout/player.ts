/** Who plays the episodes of a run, as callers say it. */
import { type RunAttached, SandlotError } from '@sandlot/protocol'
import type { RemoteFunction } from '../function/remote-function.ts'
import type { Episode, EpisodeContext, EpisodeResult, Grader } from './episode.ts'
import { type AttachOptions, isFunctionGrade } from './options.ts'
import type { Program } from './program-options.ts'
import { describeValue } from './tasks.ts'

/** A function of a module whose argument is an episode's. */
export type EpisodeInContainers<Task> = RemoteFunction<
  EpisodeContext<Task>,
  // biome-ignore lint/suspicious/noConfusingVoidType: a function that returns nothing is what users write
  EpisodeResult | void
>

export function graderOf<Task>({ grade }: AttachOptions<Task>): Grader<Task> | undefined {
  return grade && isFunctionGrade(grade) ? grade.run : undefined
}

export function isProgram<Task>(episode: Episode<Task> | Program<Task>): episode is Program<Task> {
  return typeof episode === 'object' && episode !== null && 'command' in episode
}

export function checkEpisode(episode: unknown): void {
  if (typeof episode === 'function') return
  const message = `the episode is ${describeValue(episode)}, not a function`
  throw new SandlotError('invalid_request', message, {
    hint: 'Pass `async (context) => …`. Commands are run by `rollouts.program`, and by `open` as `{ command: … }`.',
  })
}

/** Without it each grade would fail in this process, one after another. */
export function checkBrings<Task>(
  name: string,
  needs: RunAttached['needs'],
  options: AttachOptions<Task>,
): void {
  if (needs.grader && graderOf(options) === undefined) {
    throw new SandlotError('invalid_request', `the run ${name} is graded by a function`, {
      hint: 'Pass the grader as well: `attach(name, episode, { grade: { run: … } })`.',
    })
  }
  if (!needs.episode) {
    throw new SandlotError('invalid_request', `the run ${name} needs no episode function`, {
      hint: 'Attach without one, to read its results and to put tasks to it.',
    })
  }
}
