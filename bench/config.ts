/** What the bench takes from its environment; no other file of it reads it. */
import { homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const environment = process.env

export const cacheDirectory = join(
  environment.XDG_CACHE_HOME || join(homedir(), '.cache'),
  'sandlot',
)

export const repository = fileURLToPath(new URL('..', import.meta.url))

/** For child processes: what this one was given. */
export const inherited: NodeJS.ProcessEnv = environment

/** Repeats what the bench `chaos` did with this seed. */
export const chaosSeed: number | undefined = environment.SANDLOT_CHAOS_SEED
  ? Number(environment.SANDLOT_CHAOS_SEED)
  : undefined
