import type { Target } from '../host.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** The proxy by which the machine reaches a target: `http_proxy`, `https_proxy`, `all_proxy`, and `no_proxy`. */
export function upstreamProxy(env: Environment, { host, port }: Target): URL | undefined {
  const named = (name: string) => env[name] || env[name.toUpperCase()] || ''
  if (isExcepted(named('no_proxy'), host, port)) return undefined
  // Which scheme is spoken is not known here; the port tells.
  const text = named(port === 80 ? 'http_proxy' : 'https_proxy') || named('all_proxy')
  const url = text.includes('://') ? text : `http://${text}`
  if (text === '' || !URL.canParse(url)) return undefined
  const parsed = new URL(url)
  return parsed.protocol === 'http:' || parsed.protocol === 'https:' ? parsed : undefined
}

function isExcepted(list: string, host: string, port: number): boolean {
  return list.split(/[\s,]+/).some((entry) => {
    if (entry === '*') return true
    const [, name = '', only] = /^(?:\*?\.)?(.*?)(?::([0-9]+))?$/.exec(entry.toLowerCase()) ?? []
    if (name === '' || (only !== undefined && Number(only) !== port)) return false
    return host === name || host.endsWith(`.${name}`)
  })
}
