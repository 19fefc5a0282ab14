/** A daemon for this process: joins the one that runs on this machine, or starts one. */
import { access } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { findLocalDaemon, givenBinary } from '../config.ts'
import type { Waiting } from '../connection/context.ts'
import { type Located, locate } from '../connection/endpoint.ts'
import { unlessAborted } from '../connection/signals.ts'
import { type StartedDaemon, startDaemonProcess } from './daemon-process.ts'

export interface LocalOptions extends Waiting {
  /** Gets each line that a daemon prints while it is being started; the first start on a machine brings what it needs. */
  readonly onLog?: (line: string) => void
}

export interface LocalDaemon {
  /** Where it is, also after it was started again elsewhere. One that was started for this process never is. */
  readonly find: () => Promise<Located>
  /** Lets go of a daemon that was started for this process; the last one to do so drains it. */
  readonly stop: () => Promise<void>
}

/** Where none is left the answer is a refusal, at once: only one that lives, on a machine that is busy, is late. */
const ANSWER_MS = 10_000

/** The daemon that this process has started, however many clients use it. */
let own: OwnDaemon | undefined

interface OwnDaemon {
  readonly daemon: Promise<StartedDaemon>
  /** Ends a start that nobody waits for any more. */
  readonly abandon: AbortController
  /** Of everybody who waits for it: who came first is chance. */
  readonly listeners: Set<(line: string) => void>
  users: number
}

/** Throws `unreachable` when there is neither a daemon nor a `sandlot` command to start one. */
export async function joinOrStart(options: LocalOptions): Promise<LocalDaemon> {
  if (!own) {
    const joined = await join()
    if (joined) return joined
  }
  const binary = await findBinary()
  own ??= startOwn(binary)
  const mine = own
  if (options.onLog) mine.listeners.add(options.onLog)
  mine.users++
  const leave = async () => {
    if (--mine.users > 0) return
    if (own === mine) own = undefined
    mine.abandon.abort()
    await mine.daemon.then(
      (daemon) => daemon.stop(),
      () => undefined,
    )
  }
  try {
    const { endpoint } = await unlessAborted(mine.daemon, options.signal)
    return { find: async () => endpoint, stop: leave }
  } catch (error) {
    await leave()
    // Another process may have been faster: then its daemon is there by now.
    const joined = options.signal?.aborted ? undefined : await join()
    if (joined) return joined
    throw error
  }
}

function startOwn(binary: string): OwnDaemon {
  const abandon = new AbortController()
  const listeners = new Set<(line: string) => void>()
  const daemon = startDaemonProcess(binary, {
    signal: abandon.signal,
    onLog: (line) => {
      for (const listener of listeners) listener(line)
    },
  })
  daemon.catch(() => undefined)
  return { daemon, abandon, listeners, users: 0 }
}

async function join(): Promise<LocalDaemon | undefined> {
  const found = await findLocalDaemon()
  if (!found?.apiKey || !(await answers(found.url))) return undefined
  const find = () => locate({ url: undefined, apiKey: undefined })
  return { find, stop: async () => undefined }
}

async function answers(url: string): Promise<boolean> {
  return await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(ANSWER_MS) }).then(
    (answer) => answer.ok,
    () => false,
  )
}

/** Where this file stands in a checkout, from which the checkout's own `sandlot` is started. */
const CHECKOUT_PLACE = '/packages/sdk/src/local/local.ts'

/** `SANDLOT_BIN`, the checkout that this file is part of, or the command on PATH. */
async function findBinary(): Promise<string> {
  const given = givenBinary()
  if (given) return given
  if (!import.meta.url.endsWith(CHECKOUT_PLACE)) return 'sandlot'
  const checkout = fileURLToPath(new URL('../../../../sandlot', import.meta.url))
  return await access(checkout).then(
    () => checkout,
    () => 'sandlot',
  )
}
