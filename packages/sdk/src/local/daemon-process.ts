/** A `sandlot serve` that belongs to this process: it drains when its standard input is closed, so also when this process dies. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { SandlotError } from '@sandlot/protocol'
import { z } from 'zod'
import type { Endpoint } from '../config.ts'
import { unlessAborted } from '../connection/signals.ts'
import type { LocalOptions } from './local.ts'

/** The first start on a machine builds what is missing. */
const START_TIMEOUT_MS = 20 * 60_000
const DRAIN_MS = 30_000
const TERMINATE_MS = 10_000
/** Lines of its log that a failure shows. */
const LINES_SHOWN = 20

export interface StartedDaemon {
  readonly endpoint: Endpoint
  /** Resolves when it has ended. Idempotent. */
  stop(): Promise<void>
}

/** Throws `unreachable` with the last lines it printed when it doesn't come up. */
export async function startDaemonProcess(
  binary: string,
  options: LocalOptions,
): Promise<StartedDaemon> {
  const argv = ['serve', '--port', '0', '--attached']
  // A group of its own: Ctrl-C is for this process, which still needs its daemon to clean up.
  const child = spawn(binary, argv, { stdio: 'pipe', detached: true })
  // A daemon that is gone takes nothing more; its exit is what counts.
  child.stdin.on('error', () => undefined)
  const lines: string[] = []
  createInterface({ input: child.stderr }).on('line', (line) => {
    options.onLog?.(line)
    lines.push(line)
    if (lines.length > LINES_SHOWN) lines.shift()
  })
  try {
    const endpoint = await unlessAborted(announced(child, binary, lines), options.signal)
    child.unref()
    for (const stream of [child.stdin, child.stdout, child.stderr]) unref(stream)
    let ended: Promise<void> | undefined
    return {
      endpoint,
      stop: () => {
        ended ??= stop(child)
        return ended
      },
    }
  } catch (error) {
    child.kill()
    throw error
  }
}

const announcement = z.object({ url: z.string(), apiKey: z.string() })

/** Its first line on stdout: where it answers. */
function announced(
  child: ChildProcessWithoutNullStreams,
  binary: string,
  lines: readonly string[],
): Promise<Endpoint> {
  return new Promise((resolve, reject) => {
    const fail = (what: string, cause?: unknown) => {
      clearTimeout(timer)
      const message = [what, ...lines].join('\n')
      const hint = 'Start one yourself to see why: sandlot serve'
      reject(new SandlotError('unreachable', message, { hint, cause }))
    }
    const late = () => fail(`\`${binary} serve\` did not come up in time`)
    const timer = setTimeout(late, START_TIMEOUT_MS)
    child.once('error', (cause) => fail(`${binary} can't be started: ${cause.message}`, cause))
    child.once('close', (code) => fail(`\`${binary} serve\` ended with exit code ${code}`))
    createInterface({ input: child.stdout }).once('line', (line) => {
      const parsed = announcement.safeParse(parseJson(line))
      if (!parsed.success) return fail(`\`${binary} serve\` printed ${JSON.stringify(line)}`)
      clearTimeout(timer)
      resolve(parsed.data)
    })
  })
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

function stop(child: ChildProcessWithoutNullStreams): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve()
    const terminate = setTimeout(() => child.kill('SIGTERM'), DRAIN_MS)
    const kill = setTimeout(() => child.kill('SIGKILL'), DRAIN_MS + TERMINATE_MS)
    child.ref()
    child.once('exit', () => {
      clearTimeout(terminate)
      clearTimeout(kill)
      resolve()
    })
    child.stdin.end()
  })
}

/** Pipes of a child are sockets, which may let the process end. */
function unref(stream: object): void {
  if ('unref' in stream && typeof stream.unref === 'function') stream.unref()
}
