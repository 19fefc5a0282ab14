import { ROUTES, type RouteName } from '@sandlot/protocol'
import type { Scope } from './keys.ts'

/** Routes that remove what others may use. */
const ADMIN: ReadonlySet<RouteName> = new Set([
  'removeImage',
  'pruneImages',
  'deleteTemplate',
  'deleteSnapshot',
])

/** Looking needs `read`, changing `run`. The WebSocket runs commands. */
export function scopeOf(name: RouteName): Scope {
  if (ADMIN.has(name)) return 'admin'
  if (name === 'connect') return 'run'
  const { method } = ROUTES[name]
  return method === 'GET' || method === 'HEAD' ? 'read' : 'run'
}

/** What is refused while the daemon drains: whatever begins work that would hold it up. Tasks only wait. */
export const BEGINS_WORK: ReadonlySet<RouteName> = new Set([
  'createSandbox',
  'resumeSandbox',
  'forkSandbox',
  'runExec',
  'buildImage',
  'prepareTemplate',
  'createSnapshot',
  'forkSandbox',
  'createRun',
])

/** Routes whose same key is recognised by other means, named at each. */
export const OWN_IDEMPOTENCY: ReadonlySet<RouteName> = new Set([
  // The command's id comes from the key, and the agent knows the command.
  'runExec',
  // These are known by their content.
  'buildImage',
  'prepareTemplate',
])
