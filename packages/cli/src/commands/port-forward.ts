/** `sandlot port-forward SANDBOX LOCAL:PORT…`: listens on this machine for what listens in a sandbox. */
import { createServer, type Server, type Socket } from 'node:net'
import { type Sandbox, Sandlot, SandlotError } from 'sandlot'
import { Failure, Mistake } from '../failure.ts'
import { hintFor } from '../output/hints.ts'
import { note, printLine } from '../output/terminal.ts'
import { interruption } from './interruption.ts'
import { parsePort } from './ports.ts'

const HOST = '127.0.0.1'

/** A port here and the one that it leads to. */
interface Forward {
  readonly local: number
  readonly port: number
}

/** The sandbox is over: nothing more can be reached in it. */
const OVER: ReadonlySet<string> = new Set(['sandbox_gone', 'sandbox_lost', 'sandbox_unknown'])

/** Until it is interrupted, which is no failure, or the sandbox ends. Each line of result is an address that is listened on. */
export async function portForwardCommand(id: string, given: readonly string[]): Promise<number> {
  const forwards = given.map(parseForward)
  await using client = new Sandlot()
  using interrupted = interruption()
  const { signal } = interrupted
  // Also of an interruption that comes while it begins to listen.
  const stopped = new Promise<undefined>((resolve) => {
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
  const sandbox = await client.sandboxes.get(id, { signal })
  const over = Promise.withResolvers<SandlotError>()
  await using servers = new AsyncDisposableStack()
  for (const forward of forwards) {
    const server = await listen(forward, (socket) =>
      carry(sandbox, forward.port, { socket, signal, onOver: over.resolve }),
    )
    servers.defer(() => close(server))
  }
  const error = await Promise.race([stopped, over.promise])
  if (error) throw error
  return 0
}

/** `8080:8000`, `8000`, `0:8000`. */
export function parseForward(text: string): Forward {
  const [first = '', second, ...more] = text.split(':')
  if (more.length > 0) {
    throw new Mistake(`${JSON.stringify(text)} is no forward`, 'write LOCAL:PORT, or PORT alone')
  }
  const port = parsePort(second ?? first)
  if (second === undefined) return { local: port, port }
  return { local: first === '0' ? 0 : parsePort(first), port }
}

/** Prints where it listens. */
function listen({ local, port }: Forward, onSocket: (socket: Socket) => void): Promise<Server> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, onSocket)
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(refused(error, local, port)))
    server.listen(local, HOST, () => {
      const address = server.address()
      const own = typeof address === 'object' ? address?.port : local
      printLine(`${HOST}:${own} -> ${port}`)
      resolve(server)
    })
  })
}

function refused(error: NodeJS.ErrnoException, local: number, port: number): Failure {
  if (error.code === 'EADDRINUSE') {
    return new Failure(
      `another program listens on ${HOST}:${local}`,
      `take another port: ${local + 1}:${port}, or 0:${port} for any free one`,
    )
  }
  const hint =
    error.code === 'EACCES' ? `take a port above 1023: ${8000 + port}:${port}` : 'try another port'
  return new Failure(`cannot listen on ${HOST}:${local}: ${error.message}`, hint)
}

/** One connection, to both its ends. What fails is said, and ends it alone. */
async function carry(
  sandbox: Sandbox,
  port: number,
  at: {
    readonly socket: Socket
    readonly signal: AbortSignal
    readonly onOver: (error: SandlotError) => void
  },
): Promise<void> {
  const { socket, signal, onOver } = at
  const left = new AbortController()
  socket.on('error', () => socket.destroy())
  socket.once('close', () => left.abort(new Error('its client left')))
  if (signal.aborted) return void socket.destroy()
  const end = () => socket.destroy()
  signal.addEventListener('abort', end, { once: true })
  socket.once('close', () => signal.removeEventListener('abort', end))
  const fail = (error: unknown) => {
    socket.resetAndDestroy()
    if (signal.aborted || left.signal.aborted) return
    note(said(port, error))
    if (error instanceof SandlotError && OVER.has(error.code)) onOver(error)
  }
  try {
    const connection = await sandbox.ports.connect(port, { signal: left.signal })
    connection.on('error', fail)
    connection.once('close', () => connection.readableEnded || socket.destroy())
    socket.pipe(connection).pipe(socket)
  } catch (error) {
    fail(error)
  }
}

function said(port: number, error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  const hint = error instanceof SandlotError ? ` (${hintFor(error)})` : ''
  return `a connection to ${port} ended: ${message}${hint}`
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()))
}
