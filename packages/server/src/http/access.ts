import { SandlotError } from '@sandlot/protocol'

export interface AccessRules {
  /** Where the daemon listens. */
  readonly host: string
  /** Origins of pages that may call; none by default. */
  readonly allowedOrigins: readonly string[]
}

/**
 * Refuses what a browser sends on behalf of a foreign page: an origin that was not named, and on loopback a host name that is
 * not loopback's own (a name that was rebound to this machine). Programs send no origin.
 */
export function checkAccess(
  headers: { readonly origin?: string | undefined; readonly host?: string | undefined },
  rules: AccessRules,
): void {
  const { origin, host } = headers
  if (origin !== undefined && !rules.allowedOrigins.includes(origin)) {
    throw new SandlotError('forbidden', `requests from pages of ${shown(origin)} are refused`, {
      hint: 'Call from a program, or start the daemon with this origin allowed.',
    })
  }
  if (isLoopback(rules.host) && host !== undefined && !isLoopback(nameOf(host))) {
    throw new SandlotError('forbidden', `this daemon is not ${shown(host)}`, {
      hint: 'Use 127.0.0.1 or localhost in the URL.',
    })
  }
}

export function isLoopback(name: string): boolean {
  return name === 'localhost' || name === '::1' || name === '[::1]' || /^127(\.\d+){3}$/.test(name)
}

function nameOf(host: string): string {
  return host.replace(/:\d+$/, '').toLowerCase()
}

function shown(text: string): string {
  return JSON.stringify(text.slice(0, 100))
}
