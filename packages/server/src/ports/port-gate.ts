import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex, Writable } from 'node:stream'
import { SandlotError } from '@sandlot/protocol'
import type { Logger } from 'pino'
import { refuse } from '../connect/upgrade.ts'
import { toSandlotError } from '../failure.ts'
import { type AccessRules, checkAccess } from '../http/access.ts'
import { sendAnswer } from '../http/answer.ts'
import { type Caller, requireScope } from '../http/keys.ts'
import type { RateLimits } from '../http/rate-limits.ts'
import type { Answered } from '../http/request-log.ts'
import { letIn, type Rights } from '../http/rights.ts'
import { requireReach } from '../http/sandbox-token.ts'
import type { Node } from '../node/node.ts'
import { sandboxIdOf } from '../sandboxes/use.ts'
import type { Serving } from '../serving.ts'
import { Forwarder, failedAnswer } from './forward.ts'
import type { OutsideView } from './forward-headers.ts'
import { UpgradeForwarder } from './forward-upgrade.ts'
import { labelOf, originUrl, type PortPlaces, TOKEN_PATH } from './port-places.ts'
import { type PortRight, type PortTokens, placeOf } from './port-token.ts'
import { checkPort, type Ports, type PortTarget } from './ports.ts'

export interface PortGateParts {
  readonly node: Node
  readonly ports: Ports
  readonly places: PortPlaces
  readonly tokens: PortTokens
  readonly rights: Rights
  readonly rates: RateLimits
  readonly access: AccessRules
  readonly serving: Serving
  readonly log: Logger
  readonly onAnswered: (answered: Answered) => void
}

/** A request that is for a port, by its address. Who asks is not looked at yet. */
interface Addressed {
  /** With a key: sandbox and port as they stand in the path. */
  readonly named?: { readonly sandbox: string; readonly port: string }
  /** Without: the token that stands in the path or the host. */
  readonly token?: string
  /** Path on this origin below which the port is. */
  readonly prefix: string
  /** What the server gets. */
  readonly path: string
}

/** The part of the daemon's address that belongs to servers in sandboxes: whatever method, headers and protocol, it is theirs. */
export class PortGate {
  readonly #parts: PortGateParts
  readonly #forwarder: Forwarder
  readonly #upgrades: UpgradeForwarder

  constructor(parts: PortGateParts) {
    this.#parts = parts
    this.#forwarder = new Forwarder(parts.ports)
    this.#upgrades = new UpgradeForwarder(parts.ports)
  }

  /** Takes a request that is for a port; false where it is for the API. */
  takes(incoming: IncomingMessage, outgoing: ServerResponse): boolean {
    const addressed = this.#addressed(incoming)
    if (addressed) void this.#serve(addressed, incoming, outgoing)
    return addressed !== undefined
  }

  /** The same for one that wants another protocol. */
  takesUpgrade(incoming: IncomingMessage, connection: Duplex, head: Buffer): boolean {
    const addressed = this.#addressed(incoming)
    if (addressed) void this.#serveUpgrade(addressed, incoming, { connection, head })
    return addressed !== undefined
  }

  #addressed({ url = '', headers }: IncomingMessage): Addressed | undefined {
    const label = labelOf(this.#parts.places, headers.host)
    if (label !== undefined) return { token: label, prefix: '', path: pathOf(url) }
    const [, prefix, token, rest] = TOKEN.exec(url) ?? []
    if (prefix !== undefined && token !== undefined) return { token, prefix, path: rooted(rest) }
    const [, keyPrefix, sandbox, port, path] = WITH_KEY.exec(url) ?? []
    if (keyPrefix === undefined || sandbox === undefined || port === undefined) return undefined
    return { named: { sandbox, port }, prefix: keyPrefix, path: rooted(path) }
  }

  async #serve(
    addressed: Addressed,
    incoming: IncomingMessage,
    outgoing: ServerResponse,
  ): Promise<void> {
    const startedMs = performance.now()
    let error: SandlotError | undefined
    let caller: Caller | undefined
    try {
      const leads = this.#leadsTo(addressed, incoming)
      if (leads === undefined && isWithoutSlash(addressed, incoming)) {
        outgoing.writeHead(308, { location: addressed.prefix + addressed.path }).end()
      } else if (leads === undefined) {
        using admitted = await this.#admit(addressed, incoming, outgoing)
        caller = admitted.caller
        error = await this.#forwarder.forward({ ...admitted, incoming, outgoing })
      } else {
        outgoing.writeHead(307, { location: leads, 'referrer-policy': 'no-referrer' }).end()
      }
    } catch (thrown) {
      error = this.#known(thrown)
      if (!outgoing.headersSent) sendAnswer({ incoming, outgoing }, failedAnswer(error))
    }
    const { statusCode: status } = outgoing
    this.#tell(addressed, { incoming, status, startedMs, error, caller })
  }

  async #serveUpgrade(
    addressed: Addressed,
    incoming: IncomingMessage,
    { connection, head }: { readonly connection: Duplex; readonly head: Buffer },
  ): Promise<void> {
    const startedMs = performance.now()
    connection.on('error', () => connection.destroy())
    let error: SandlotError | undefined
    let caller: Caller | undefined
    try {
      using admitted = await this.#admit(addressed, incoming, connection)
      caller = admitted.caller
      await this.#upgrades.forward({ ...admitted, incoming, connection, head })
    } catch (thrown) {
      error = this.#known(thrown)
      refuse(connection, failedAnswer(error))
    }
    const status = error?.status ?? 101
    this.#tell(addressed, { incoming, status, startedMs, error, caller })
  }

  /** Who may pass: with a key that runs things, or with a token that this daemon gave. What lasts ends with the right to it. */
  async #admit(
    { named, token, prefix, path }: Addressed,
    incoming: IncomingMessage,
    client: Writable,
  ): Promise<Admitted> {
    const { node, rights, serving } = this.#parts
    const right =
      named === undefined ? this.#rightOfToken(token, incoming) : this.#rightOfKey(named, incoming)
    const { sandbox, port, caller, project } = right
    checkPort(port)
    serving.checkTakes({ admitted: node.isOfAttempt(sandbox) })
    const left = new AbortController()
    const leave = () => left.abort(new SandlotError('cancelled', 'the client is gone'))
    client.once('close', leave)
    const { signal } = left
    const owned = project === undefined ? {} : { project }
    const lent = await node.sandboxes.lend(sandbox, { ...owned, signal })
    client.off('close', leave)
    const protocol = 'encrypted' in incoming.socket ? 'https' : 'http'
    const held = rights.hold(caller, () => client.destroy())
    return {
      caller,
      target: { lent, port },
      view: { port, prefix, protocol, hasKey: named !== undefined },
      path,
      [Symbol.dispose]: () => {
        held[Symbol.dispose]()
        lent[Symbol.dispose]()
      },
    }
  }

  #rightOfToken(token = '', incoming: IncomingMessage): Right {
    const { sandbox, port, key, expiresAtMs } = this.#verified(token, incoming)
    const right = { id: sandbox, expiresAtMs }
    const caller = { key, project: '', scope: 'run', isOperator: false, sandbox: right } as const
    return { sandbox, port, caller }
  }

  /** Who guesses tokens is held up as who guesses keys. */
  #verified(token: string, { socket }: IncomingMessage): PortRight {
    const { tokens, rates } = this.#parts
    try {
      return tokens.verify(token)
    } catch (error) {
      rates.refused(socket.remoteAddress ?? '')
      throw error
    }
  }

  #rightOfKey(named: { sandbox: string; port: string }, incoming: IncomingMessage): Right {
    checkAccess(incoming.headers, this.#parts.access)
    const caller = letIn(incoming, this.#parts)
    this.#parts.rates.take(caller.key)
    requireScope(caller, 'run')
    requireReach(caller, 'listPorts', named.sandbox)
    const sandbox = sandboxIdOf(named.sandbox)
    return { sandbox, port: Number(named.port), caller, project: caller.project }
  }

  /** Where a browser is led to that opens a page by a path: there the page has an origin for itself. */
  #leadsTo({ token, prefix, path }: Addressed, incoming: IncomingMessage): string | undefined {
    const { headers } = incoming
    if (token === undefined || prefix === '' || headers['sec-fetch-mode'] !== 'navigate') return
    const url = originUrl(this.#parts.places, token, path, headers.host)
    if (url === null) return
    this.#verified(token, incoming)
    return url
  }

  #known(thrown: unknown): SandlotError {
    const error = toSandlotError(thrown)
    if (error.code === 'internal') this.#parts.log.error({ err: thrown }, 'a request failed')
    return error
  }

  #tell({ token, named, path }: Addressed, told: Told): void {
    const { incoming, status, startedMs, error, caller } = told
    // A token is a right: the log has the port and the sandbox of it.
    const place = named ?? placeOf(token ?? '')
    this.#parts.onAnswered({
      ...{ route: 'port' as const, method: incoming.method ?? '', status, error },
      target: `/v1/sandboxes/${place.sandbox}/ports/${place.port}${path.split('?')[0]}`,
      elapsedMs: performance.now() - startedMs,
      caller,
      targets: { id: place.sandbox },
      address: incoming.socket.remoteAddress ?? null,
    })
  }
}

/** A request that may pass, until disposed. */
interface Admitted extends Disposable {
  readonly caller: Caller
  readonly target: PortTarget
  readonly view: OutsideView
  readonly path: string
}

interface Right {
  readonly sandbox: string
  readonly port: number
  readonly caller: Caller
  /** Whose it has to be; a token was given for this very sandbox. */
  readonly project?: string
}

interface Told {
  readonly caller: Caller | undefined
  readonly incoming: IncomingMessage
  readonly status: number
  readonly startedMs: number
  readonly error: SandlotError | undefined
}

const TOKEN = new RegExp(`^(${TOKEN_PATH}([^/?]+))(.*)$`)
const WITH_KEY = /^(\/v1\/sandboxes\/([^/?]+)\/ports\/(\d{1,9}))(?![^/?])(.*)$/

/** The root of a server below a prefix, without its slash: what a page there names by relative addresses would be looked for beside it. */
function isWithoutSlash({ prefix, path }: Addressed, { url = '', method = '' }: IncomingMessage) {
  const isRoot = prefix !== '' && !url.startsWith(`${prefix}/`) && path.startsWith('/')
  return isRoot && ['GET', 'HEAD'].includes(method)
}

/** What is left of an address behind its prefix, as a path. */
function rooted(rest: string | undefined): string {
  return rest?.startsWith('/') ? rest : `/${rest ?? ''}`
}

/** Path and query, also of an address that names its host. */
function pathOf(url: string): string {
  if (url.startsWith('/') || url === '*' || !URL.canParse(url)) return url
  const { pathname, search } = new URL(url)
  return pathname + search
}
