import { ROUTES, type RouteName, type Scope } from '@sandlot/protocol'

/** Routes that remove what others may use, or say who may what. */
const ADMIN: ReadonlySet<RouteName> = new Set([
  'backUp',
  'removeImage',
  'pruneImages',
  'deleteTemplate',
  'deleteSnapshot',
  'setSecret',
  'deleteSecret',
  'createKey',
  'listKeys',
  'revokeKey',
  'getAudit',
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

/** What is refused while the disk is nearly full, beside sandboxes, which wait for room. */
export const NEEDS_DISK: ReadonlySet<RouteName> = new Set([
  'buildImage',
  'prepareTemplate',
  'createSnapshot',
  'backUp',
  'putBlob',
])

/** Routes whose same key is recognised by other means, named at each. */
export const OWN_IDEMPOTENCY: ReadonlySet<RouteName> = new Set([
  // The command's id comes from the key, and the agent knows the command.
  'runExec',
  // Its answer has the text of a key, which is kept nowhere: the same request again is refused by the id that it gives.
  'createKey',
  // Set again it is the same. Not even a digest of a secret is kept with the requests that are remembered.
  'setSecret',
  // These are known by their content.
  'buildImage',
  'prepareTemplate',
])
