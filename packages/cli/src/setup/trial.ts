/** Whether a runsc that we did not bring starts a sandbox here: tried once, then remembered for as long as nothing of it changes. */
import { createHash } from 'node:crypto'
import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { release } from 'node:os'
import { join } from 'node:path'
import { type Place, place as thisMachine } from '../config.ts'

const PREFIX = 'runsc-tried-'

export interface TrialOptions {
  readonly runsc: string
  /** What it is tried with; their change is a reason to try again. */
  readonly agent: string
  readonly helper: string
  readonly place?: Place
  /** Starts a sandbox and stops it. */
  readonly start: () => Promise<void>
}

/** Fails as `start` does. A failure is not remembered: its cause may be mended. */
export async function tryOnce(options: TrialOptions): Promise<void> {
  const { place = thisMachine, start } = options
  const stamp = join(place.cacheDirectory, `${PREFIX}${await keyOf(options)}`)
  const isKnown = await stat(stamp).then(
    () => true,
    () => false,
  )
  if (isKnown) return
  await start()
  await mkdir(place.cacheDirectory, { recursive: true })
  for (const name of await readdir(place.cacheDirectory)) {
    if (name.startsWith(PREFIX)) await rm(join(place.cacheDirectory, name), { force: true })
  }
  await writeFile(stamp, `${options.runsc}\n`)
}

async function keyOf({ runsc, agent, helper }: TrialOptions): Promise<string> {
  const hash = createHash('sha256').update(`${release()}\n`)
  for (const path of [runsc, agent, helper]) {
    const { ino, size, mtimeMs } = await stat(path)
    hash.update(`${path} ${ino} ${size} ${mtimeMs}\n`)
  }
  return hash.digest('hex').slice(0, 16)
}
