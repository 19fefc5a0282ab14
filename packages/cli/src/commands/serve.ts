/** `sandlot serve`: the daemon in the foreground. */
import { exit, stdin } from 'node:process'
import { SandlotError } from 'sandlot'
import { note, printLine } from '../output/terminal.ts'
import { ensureMachine } from '../setup/machine.ts'
import { EXIT_INTERRUPTED, Interrupted } from './interruption.ts'

export interface ServeOptions {
  readonly host?: string
  readonly port?: number
  readonly dataDirectory?: string
  readonly runDirectory?: string
  readonly pool?: number
  readonly tlsCert?: string
  readonly tlsKey?: string
  readonly attached?: boolean
}

const DRAIN_MS = 10 * 60_000

/** Serves until it is told to stop; then drains. Returns the exit code. */
export async function serveCommand(options: ServeOptions): Promise<number> {
  const { attached = false, host, port, dataDirectory, runDirectory, pool } = options
  const tls = tlsOf(options)
  using stop = stopRequests(attached)
  const { daemonOptions, startDaemon } = await import('@sandlot/server')
  const input = { host, port, dataDirectory, runDirectory, poolTarget: pool, tls }
  const gvisor =
    daemonOptions(input).driver === 'gvisor'
      ? await ensureMachine(note, { signal: stop.signal, packagesMayMiss: true })
      : {}
  stop.signal.throwIfAborted()
  const daemon = await startDaemon({ ...input, gvisor })
  if (attached) printLine(JSON.stringify({ url: daemon.url, apiKey: daemon.apiKey }))
  const why = await stop.first
  // Whoever it was started for is gone: nobody waits for what still runs.
  const drainMs = attached ? 0 : DRAIN_MS
  note(`${why}: draining${drainMs > 0 ? '; once more to stop at once' : ''}`)
  void stop.second.then(() => daemon.close())
  await daemon.close({ drainMs })
  return 0
}

function tlsOf({ tlsCert: cert, tlsKey: key }: ServeOptions) {
  if (cert !== undefined && key !== undefined) return { cert, key }
  if (cert === undefined && key === undefined) return undefined
  const [is, other] = cert === undefined ? ['--tls-key', '--tls-cert'] : ['--tls-cert', '--tls-key']
  throw new SandlotError('invalid_request', `${is} is given without ${other}`, {
    hint: 'A certificate and its key belong together.',
  })
}

interface StopRequests extends Disposable {
  /** Resolves with what asked for the end. */
  readonly first: Promise<string>
  /** Resolves when it was asked again. */
  readonly second: Promise<void>
  /** Aborted with the first, for what waits before there is a daemon. */
  readonly signal: AbortSignal
}

/** Ctrl-C, SIGTERM and the end of standard input ask; a third time ends the process whatever it does. */
function stopRequests(attached: boolean): StopRequests {
  const first = Promise.withResolvers<string>()
  const second = Promise.withResolvers<void>()
  const controller = new AbortController()
  let count = 0
  const ask = (why: string) => {
    count++
    first.resolve(why)
    controller.abort(new Interrupted())
    if (count === 2) second.resolve()
    if (count === 3) exit(EXIT_INTERRUPTED)
  }
  const interrupted = () => ask('interrupted')
  const terminated = () => ask('told to stop')
  process.on('SIGINT', interrupted)
  process.on('SIGTERM', terminated)
  if (attached) {
    stdin.resume()
    const end = () => count === 0 && ask('its owner is gone')
    for (const event of ['end', 'close', 'error']) stdin.once(event, end)
  }
  return {
    first: first.promise,
    second: second.promise,
    signal: controller.signal,
    [Symbol.dispose]() {
      process.off('SIGINT', interrupted)
      process.off('SIGTERM', terminated)
    },
  }
}
