const RUN_DIGITS = 13
const INDEX_DIGITS = 7

/**
 * The id of an episode: 13 characters of its run's id, then its position in base 36. Nothing has to
 * be drawn or looked up, and two runs never share one.
 */
export function episodeId(run: string, index: number): string {
  const label = run.slice(run.indexOf('_') + 1, run.indexOf('_') + 1 + RUN_DIGITS)
  return `ep_${label.padEnd(RUN_DIGITS, '0')}${index.toString(36).padStart(INDEX_DIGITS, '0')}`
}

/** The position that an episode's id names, or undefined where it is not one of this run's. */
export function episodeIndex(run: string, id: string): number | undefined {
  const index = Number.parseInt(id.slice(-INDEX_DIGITS), 36)
  return Number.isNaN(index) || episodeId(run, index) !== id ? undefined : index
}
