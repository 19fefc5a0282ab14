/** `sandlot serve`: the daemon in the foreground. */
import { exit, stdin } from 'node:process'
import { note, printLine } from '../output/terminal.ts'
import { ensureMachine } from '../setup/machine.ts'

export interface ServeOptions {
  readonly host?: string
  readonly port?: number
  readonly dataDirectory?: string
  readonly runDirectory?: string
  readonly pool?: number
  readonly attached?: boolean
}

const DRAIN_MS = 10 * 60_000
const EXIT_INTERRUPTED = 130

/** Serves until it is told to stop; then drains. Returns the exit code. */
export async function serveCommand(options: ServeOptions): Promise<number> {
  const { runsc, helper, agent } = await ensureMachine(note)
  const { startDaemon } = await import('@sandlot/server')
  const { host, port, dataDirectory, runDirectory, pool } = options
  const daemon = await startDaemon({
    host,
    port,
    dataDirectory,
    runDirectory,
    poolTarget: pool,
    gvisor: { runsc, helper, agent },
  })
  if (options.attached) printLine(JSON.stringify({ url: daemon.url, apiKey: daemon.apiKey }))
  const why = await stopRequest(options.attached === true)
  // Whoever it was started for is gone: nobody waits for what still runs.
  const drainMs = options.attached ? 0 : DRAIN_MS
  note(`${why}: draining${drainMs > 0 ? '; once more to stop at once' : ''}`)
  await daemon.close({ drainMs })
  return 0
}

/** Resolves at the first Ctrl-C or SIGTERM, or when standard input is closed; a second signal ends the process. */
function stopRequest(attached: boolean): Promise<string> {
  return new Promise((resolve) => {
    let asked = false
    const ask = (why: string) => {
      if (asked) exit(EXIT_INTERRUPTED)
      asked = true
      resolve(why)
    }
    process.on('SIGINT', () => ask('interrupted'))
    process.on('SIGTERM', () => ask('told to stop'))
    if (attached) {
      stdin.resume()
      stdin.once('end', () => !asked && ask('its owner is gone'))
      stdin.once('error', () => !asked && ask('its owner is gone'))
    }
  })
}
