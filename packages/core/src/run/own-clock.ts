import type { Episode, Run } from './run.ts'

/**
 * The run's own clock: it stands while the run is not running (no worker is there, a person paused it) and while there is no
 * coordinator. A cut goes by it, so that nothing is called slow for what kept all of them waiting.
 */
export function ownClock(run: Run, atMs: number): number {
  return (run.stoodSinceMs ?? atMs) - run.stoodMs
}

/** When the clock shows this, if it goes on from now; null while it stands. */
export function whenOwnClock(run: Run, ownMs: number): number | null {
  return run.stoodSinceMs === null ? ownMs + run.stoodMs : null
}

/** The clock stands from now on, or goes on. */
export function moveOwnClock(run: Run, runs: boolean, atMs: number): void {
  if (!runs) run.stoodSinceMs ??= atMs
  else if (run.stoodSinceMs !== null) {
    run.stoodMs += atMs - run.stoodSinceMs
    run.stoodSinceMs = null
  }
}

/** What an episode has taken since it was first admitted. */
export function elapsedMs(run: Run, episode: Episode, atMs: number): number {
  return episode.startedMs === null ? 0 : Math.max(0, ownClock(run, atMs) - episode.startedMs)
}
