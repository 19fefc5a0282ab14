import { isLoopback } from '../http/access.ts'

/** Where ports of sandboxes are found from outside. */
export interface PortPlaces {
  /** Of the daemon. */
  readonly daemonUrl: () => string
  /** An origin below whose host each port has a name of its own; `host` is what a client calls the daemon, which may be a tunnel to it. */
  readonly origin: (host?: string) => URL | undefined
}

/** Path of everything that a token leads to, on the daemon's own origin. */
export const TOKEN_PATH = '/p/'

/** As it is configured; on the loopback every name below `localhost` is this machine's to a browser. */
export function portPlaces(options: {
  readonly host: string
  readonly portsUrl: string | null
  readonly daemonUrl: () => string
}): PortPlaces {
  const { host, portsUrl, daemonUrl } = options
  return {
    daemonUrl,
    origin: (asked) => {
      if (portsUrl !== null) return new URL(portsUrl)
      if (!isLoopback(host)) return undefined
      const url = new URL(daemonUrl())
      url.hostname = 'localhost'
      if (asked !== undefined) url.port = /:(\d+)$/.exec(asked)?.[1] ?? ''
      return url
    },
  }
}

/** On the daemon's origin: any program can follow it. */
export function tokenUrl({ daemonUrl }: PortPlaces, token: string, path: string): string {
  return `${daemonUrl()}${TOKEN_PATH}${token}${path}`
}

/** With a host name of its own. */
export function originUrl(
  { origin }: PortPlaces,
  token: string,
  path: string,
  host?: string,
): string | null {
  const base = origin(host)
  return base ? `${base.protocol}//${token}.${base.host}${path}` : null
}

/** The label in front of the host below which ports have their names; undefined for a host that is not below it. */
export function labelOf({ origin }: PortPlaces, host: string | undefined): string | undefined {
  const below = `.${origin()?.hostname ?? ''}`
  const name = (host ?? '').replace(/:\d+$/, '').toLowerCase()
  return below !== '.' && name.endsWith(below) ? name.slice(0, -below.length) : undefined
}
