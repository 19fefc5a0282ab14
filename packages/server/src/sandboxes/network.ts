import { LIMITS, type NetworkLogPage, SandlotError } from '@sandlot/protocol'
import type { Call, Handlers } from '../http/call.ts'
import type { Entry } from '../node/entry.ts'
import { goneError } from '../node/lend.ts'
import type { Node } from '../node/node.ts'
import { networkInForce } from '../node/set-network.ts'
import { unlessAborted } from '../node/waits.ts'
import { sandboxIdOf } from './use.ts'

type NetworkRoutes = 'getNetwork' | 'setNetwork' | 'readNetworkLog'
type AnyCall = Pick<Call<NetworkRoutes>, 'params' | 'caller' | 'signal'>

/** What a sandbox may reach while it runs, and what it asked for. */
export function networkHandlers(
  node: Node,
  clock: { now(): number },
): Pick<Handlers, NetworkRoutes> {
  return {
    getNetwork: async (call) => networkInForce(await liveEntry(node, call, clock.now())),
    setNetwork: async (call) => {
      const entry = await liveEntry(node, call, clock.now())
      return await unlessAborted(node.networks.set(entry, call.body.policy), call.signal)
    },
    readNetworkLog: (call) => readLog(node, call, clock.now()),
  }
}

async function readLog(
  node: Node,
  call: Call<'readNetworkLog'>,
  nowMs: number,
): Promise<NetworkLogPage> {
  const { from = 0, limit = LIMITS.itemsPerPage, wait = 0 } = call.query
  const late = AbortSignal.timeout(Math.min(wait, LIMITS.waitMs))
  const signal = AbortSignal.any([call.signal, late])
  const found = find(node, call, nowMs)
  const journal = await node.networks.journal('entry' in found ? found.entry : found.ended.sandbox)
  return wait > 0 ? await journal.wait(from, limit, signal) : journal.read(from, limit)
}

async function liveEntry(node: Node, call: AnyCall, nowMs: number): Promise<Entry> {
  const found = find(node, call, nowMs)
  if ('ended' in found) throw goneError(found.ended, found.ended.sandbox)
  await unlessAborted(found.entry.ready, call.signal)
  if (found.entry.busy) await unlessAborted(found.entry.busy, call.signal)
  return found.entry
}

function find(node: Node, { params, caller }: AnyCall, nowMs: number) {
  const id = sandboxIdOf(params.id)
  const entry = node.sandboxes.entries.get(id)
  if (entry?.record.project === caller.project) return { entry }
  const ending = node.endingsKnown.find(id, nowMs)
  if (ending?.record.project === caller.project) return { ended: ending.ended }
  throw new SandlotError('sandbox_unknown', `no sandbox ${id} is known here`)
}
