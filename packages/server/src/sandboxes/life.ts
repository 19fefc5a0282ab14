import {
  KEEP_WARM_DEFAULT_MS,
  type NetworkChoice,
  newId,
  type PhaseNetwork,
  type SandboxView,
  SandlotError,
} from '@sandlot/protocol'
import { defined } from '../defined.ts'
import type { Call, Handlers } from '../http/call.ts'
import { pageOf } from '../http/page.ts'
import { idFromKey } from '../id-from-key.ts'
import type { Node } from '../node/node.ts'
import { CLIENT } from '../node/owners.ts'
import type { Secrets } from '../secrets/secrets.ts'
import type { StartPoints } from '../start-points.ts'
import { hasTag } from './has-tag.ts'
import { startOf } from './start-of.ts'
import { sandboxIdOf } from './use.ts'
import { endedView, liveView } from './view.ts'

type LifeRoutes = 'createSandbox' | 'listSandboxes' | 'getSandbox' | 'stopSandbox'

/** Sandboxes that a client makes and ends by itself. */
export function lifeHandlers(
  node: Node,
  startPoints: StartPoints,
  secrets: Secrets,
  clock: { now(): number },
): Pick<Handlers, LifeRoutes> {
  return {
    createSandbox: (call) => create({ node, startPoints, secrets }, call),
    listSandboxes: async (call) => list(node, call, clock.now()),
    getSandbox: (call) => get(node, call, clock.now()),
    stopSandbox: (call) => stop(node, call, clock.now()),
  }
}

async function create(
  {
    node,
    startPoints,
    secrets,
  }: { readonly node: Node; readonly startPoints: StartPoints; readonly secrets: Secrets },
  call: Call<'createSandbox'>,
): Promise<SandboxView> {
  const { body, caller, idempotencyKey: key } = call
  const id = key === undefined ? newId('sandbox') : idFromKey('sandbox', caller.project, key)
  // A client that is gone and left no key can never find it.
  const onGone = () => {
    if (key === undefined) void node.release({ sandbox: id, reason: 'its client left' })
  }
  call.signal.addEventListener('abort', onGone, { once: true })
  try {
    const network = body.network === undefined ? {} : phasesOf(body.network)
    await secrets.check(caller.project, body.secrets, { network, ...defined({ env: body.env }) })
    using start = await startPoints.resolve(caller.project, body.from)
    const entry = await node.sandboxes.acquire({
      sandbox: id,
      ...(start.id === start.image ? {} : { from: start.id }),
      ...startOf(start, body),
      project: caller.project,
      owner: CLIENT,
      epoch: 0,
      keepWarmMs: body.keepWarm ?? KEEP_WARM_DEFAULT_MS,
      ...(body.lifetime === undefined ? {} : { lifetimeMs: body.lifetime }),
      ...(body.tags ? { tags: body.tags } : {}),
      network,
      ...(body.secrets ? { secrets: body.secrets } : {}),
      ...(body.checkpointable ? { checkpointable: true } : {}),
    })
    return liveView(entry)
  } finally {
    call.signal.removeEventListener('abort', onGone)
  }
}

/** A sandbox of no run is always in the phase `agent`. */
function phasesOf(network: NetworkChoice): PhaseNetwork {
  return network === 'open'
    ? { setup: network, agent: network, grade: network }
    : { agent: network }
}

/** Those that live, oldest first; with `state=stopped` those that ended lately. */
function list(
  node: Node,
  { query, caller }: Call<'listSandboxes'>,
  nowMs: number,
): { items: SandboxView[]; next: string | null } {
  const all =
    query.state === 'stopped'
      ? node.endingsKnown.list(nowMs).map(endedView)
      : [...node.sandboxes.entries.values()].map(liveView)
  const wanted = all
    .filter((view) => view.project === caller.project)
    .filter((view) => query.state === undefined || view.state === query.state)
    .filter((view) => (query.tag ?? []).every((tag) => hasTag(view.tags, tag)))
  const { items, next } = pageOf(wanted, query)
  return { items: [...items], next }
}

async function get(node: Node, call: Call<'getSandbox'>, nowMs: number): Promise<SandboxView> {
  const id = sandboxIdOf(call.params.id)
  const entry = node.sandboxes.entries.get(id)
  if (entry?.record.project === call.caller.project) {
    const usage = await node.usage(entry)
    return {
      ...liveView(entry),
      ...(usage
        ? { usage: { ...usage, networkBytes: entry.networkBytes + (usage.networkBytes ?? 0) } }
        : {}),
    }
  }
  return endedView(findEnding(node, id, call.caller.project, nowMs))
}

async function stop(node: Node, call: Call<'stopSandbox'>, nowMs: number): Promise<SandboxView> {
  const id = sandboxIdOf(call.params.id)
  const entry = node.sandboxes.entries.get(id)
  if (entry?.record.project === call.caller.project) {
    const by = entry.record.owner === CLIENT ? 'owner' : 'other'
    await node.release({ sandbox: id, reason: 'stopped by its client', by })
  }
  return endedView(findEnding(node, id, call.caller.project, nowMs))
}

function findEnding(node: Node, id: string, project: string, nowMs: number) {
  const ending = node.endingsKnown.find(id, nowMs)
  if (ending?.record.project === project) return ending
  throw new SandlotError('sandbox_unknown', `no sandbox ${id} is known here`)
}
