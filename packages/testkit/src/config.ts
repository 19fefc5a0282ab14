/** What the testkit takes from its environment; no other file of it reads it. */
import { homedir } from 'node:os'
import { join } from 'node:path'

/** Things that tests keep between runs. */
export const cacheDirectory = join(
  process.env.XDG_CACHE_HOME || join(homedir(), '.cache'),
  'sandlot',
)

/** Another one in each test process that runs at the same time. */
export const workerNumber = Number(process.env.VITEST_POOL_ID ?? 0)
