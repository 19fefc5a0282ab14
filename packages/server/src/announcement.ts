import { mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { SandlotError } from '@sandlot/protocol'
import { z } from 'zod'
import { newKey } from './http/keys.ts'
import { keptSecret } from './kept-secret.ts'
import { SERVER_LIMITS } from './limits.ts'
import { writeWhole } from './write-whole.ts'

/** `<runDirectory>/daemon.json`: where the daemon of this machine answers. */
export const announcement = z.object({
  url: z.string(),
  pid: z.number(),
  dataDirectory: z.string(),
})
export type Announcement = z.infer<typeof announcement>

const NAME = 'daemon.json'

/**
 * Refuses a run directory in which another daemon answers: its clients would find this one, and after its end none.
 * @throws SandlotError `invalid_request`
 */
export async function checkRunDirectory(
  runDirectory: string,
  answerMs: number = ANSWER_MS,
): Promise<void> {
  const other = await readAnnouncement(runDirectory)
  if (other === undefined || !(await answers(other, answerMs))) return
  const message = `process ${other.pid} has the run directory ${runDirectory}, for the data directory ${other.dataDirectory}`
  throw new SandlotError('invalid_request', message, {
    hint: `Stop process ${other.pid}, or give this daemon a --run-directory of its own.`,
  })
}

/** What is left of a killed daemon answers nothing. */
async function answers({ url, pid }: Announcement, answerMs: number): Promise<boolean> {
  try {
    return (await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(answerMs) })).ok
  } catch (error) {
    // Somebody has its port, who may be busy.
    if ((error as Error).name === 'TimeoutError') return isRunning(pid)
    // A certificate that this process doesn't trust is shown by one who lives.
    const { code = '' } = ((error as Error).cause ?? {}) as { code?: string }
    return /CERT|TLS|SSL|VERIFY/.test(code)
  }
}

/** One that lives is late where its machine is busy, and is not to be taken for dead. */
const ANSWER_MS = 10_000

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // One of another user is there too.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/**
 * Says where the daemon is, so that CLI and SDK find it, and says it again when what was said is deleted: a tidied /run must not
 * hide a daemon that lives. Disposing takes it back, unless it is another daemon's by now.
 */
export async function announce(
  runDirectory: string,
  said: Announcement,
  onError: (error: unknown) => void,
): Promise<AsyncDisposable> {
  await write(runDirectory, said)
  let looking: Promise<void> = Promise.resolve()
  const timer = setInterval(() => {
    looking = looking.then(() => sayAgain(runDirectory, said)).catch(onError)
  }, SERVER_LIMITS.announceEveryMs)
  timer.unref()
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await looking
      const found = await readAnnouncement(runDirectory)
      if (found?.pid !== said.pid || found.url !== said.url) return
      await rm(join(runDirectory, NAME), { force: true })
    },
  }
}

async function sayAgain(runDirectory: string, said: Announcement): Promise<void> {
  if (await readAnnouncement(runDirectory)) return
  await mkdir(runDirectory, { recursive: true, mode: RUN_DIRECTORY_MODE })
  await write(runDirectory, said)
}

async function write(runDirectory: string, said: Announcement): Promise<void> {
  await writeWhole(join(runDirectory, NAME), `${JSON.stringify(said)}\n`, 0o644)
}

/** Everybody may look for the daemon. */
export const RUN_DIRECTORY_MODE = 0o755

export async function readAnnouncement(runDirectory: string): Promise<Announcement | undefined> {
  try {
    return announcement.parse(JSON.parse(await readFile(join(runDirectory, NAME), 'utf8')))
  } catch {
    return undefined
  }
}

/** The key for everybody on this machine who may read the data directory: made once, mode 0600. */
export function localKey(dataDirectory: string): Promise<string> {
  return keptSecret(join(dataDirectory, 'key'), newKey)
}

/** @throws SandlotError `invalid_request` where the directory can't be made */
export async function makeDirectory(path: string, mode: number): Promise<void> {
  try {
    await mkdir(path, { recursive: true, mode })
  } catch (error) {
    throw new SandlotError('invalid_request', `cannot make ${path}: ${(error as Error).message}`, {
      hint: 'Start as root, or choose directories that may be written: --data-directory, --run-directory.',
      cause: error,
    })
  }
}
