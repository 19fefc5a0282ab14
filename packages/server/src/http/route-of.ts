import type { IncomingMessage } from 'node:http'
import { ROUTES, type RouteName, SandlotError } from '@sandlot/protocol'

/** The route of this method where two share a path, of which one is HEAD; undefined where HEAD has none and the body would stream. */
export function routeOf(mounted: RouteName, method: string | undefined): RouteName | undefined {
  if (method !== 'HEAD') return mounted
  const { path, answer } = ROUTES[mounted]
  const head = (Object.keys(ROUTES) as RouteName[]).find(
    (name) => ROUTES[name].method === 'HEAD' && ROUTES[name].path === path,
  )
  return head ?? (answer === 'bytes' || answer === 'lines' ? undefined : mounted)
}

export function unknownRoute(incoming: IncomingMessage): SandlotError {
  const path = (incoming.url ?? '').split('?')[0] ?? ''
  return new SandlotError('route_unknown', `no route ${incoming.method} ${path.slice(0, 200)}`)
}
