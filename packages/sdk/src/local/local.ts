/** A daemon for this process: joins the one that runs on this machine, or starts one. */
import { type ChildProcess, spawn } from 'node:child_process'
import { access } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { SandlotError } from '@sandlot/protocol'
import { type Endpoint, findLocalEndpoint, givenBinary } from '../config.ts'

const START_TIMEOUT_MS = 20 * 60_000
const STOP_TIMEOUT_MS = 30_000

export interface LocalDaemon {
  readonly endpoint: Endpoint
  /** Drains the daemon that was started for this process; a joined one goes on. */
  readonly stop: () => Promise<void>
}

/** Throws `unreachable` when there is neither a daemon nor a `sandlot` command to start one. */
export async function joinOrStart(): Promise<LocalDaemon> {
  const running = await findLocalEndpoint()
  if (running && (await answers(running.url)))
    return { endpoint: running, stop: async () => undefined }
  return await start(await findBinary())
}

async function answers(url: string): Promise<boolean> {
  return await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(2_000) }).then(
    (answer) => answer.ok,
    () => false,
  )
}

/** `SANDLOT_BIN`, the checkout that this file is part of, or the command on PATH. */
async function findBinary(): Promise<string> {
  if (givenBinary) return givenBinary
  const checkout = fileURLToPath(new URL('../../../../sandlot', import.meta.url))
  return await access(checkout).then(
    () => checkout,
    () => 'sandlot',
  )
}

/** The daemon ends with this process: it drains when its standard input is closed. */
async function start(binary: string): Promise<LocalDaemon> {
  const child = spawn(binary, ['serve', '--port', '0', '--attached'], {
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const errors: string[] = []
  createInterface({ input: child.stderr }).on('line', (line) => {
    errors.push(line)
    if (errors.length > 20) errors.shift()
  })
  const endpoint = await announced(child, binary, errors)
  child.unref()
  for (const stream of [child.stdin, child.stdout, child.stderr])
    (stream as { unref?: () => void }).unref?.()
  return { endpoint, stop: async () => await stop(child) }
}

function announced(
  child: ChildProcess,
  binary: string,
  errors: readonly string[],
): Promise<Endpoint> {
  return new Promise((resolve, reject) => {
    const fail = (what: string, cause?: unknown) => {
      clearTimeout(timer)
      child.kill()
      const hint = 'Start one yourself to see why: sandlot serve'
      reject(
        new SandlotError(
          'unreachable',
          `${what}${errors.length > 0 ? `:\n${errors.join('\n')}` : ''}`,
          { hint, cause },
        ),
      )
    }
    const timer = setTimeout(
      () => fail(`${binary} serve did not come up in time`),
      START_TIMEOUT_MS,
    )
    child.once('error', (error) => fail(`${binary} can't be started`, error))
    child.once('exit', (code) => fail(`${binary} serve ended with exit code ${code}`))
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).once('line', (line) => {
      clearTimeout(timer)
      child.removeAllListeners('exit')
      resolve(JSON.parse(line) as Endpoint)
    })
  })
}

function stop(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve()
    const timer = setTimeout(() => child.kill('SIGTERM'), STOP_TIMEOUT_MS)
    child.ref()
    child.once('exit', () => {
      clearTimeout(timer)
      resolve()
    })
    child.stdin?.end()
  })
}
