import {
  isOpenNetwork,
  type NetworkInForce,
  type NetworkPolicy,
  relayPolicy,
  SandlotError,
} from '@sandlot/protocol'
import { limitsInForce, NETWORK_LIMITS, type Sandbox } from '@sandlot/runtime'
import type { Entry } from './entry.ts'
import { goneError, pausedError } from './lend.ts'
import type { NetworkJournal } from './network-journal.ts'
import { hasNetwork, journalOf, type NetworkParts, openNetwork } from './networks.ts'
import { CLIENT } from './owners.ts'
import type { OwnershipRecord } from './ownership.ts'

/** The networks of a node's sandboxes, for those who own them. */
export interface NodeNetworks {
  set(entry: Entry, policy: NetworkPolicy): Promise<NetworkInForce>
  /** What a sandbox asked of its network; with an id, of one that has ended. */
  journal(sandbox: Entry | string): Promise<NetworkJournal>
}

export function nodeNetworks(parts: NetworkParts): NodeNetworks {
  return {
    set: (entry, policy) => setNetwork(parts, entry, policy),
    journal: (sandbox) =>
      typeof sandbox === 'string' ? parts.journals.ended(sandbox) : journalOf(parts, sandbox),
  }
}

/**
 * From now on this policy decides, also after a restart; connections that it refuses are closed before this resolves. A sandbox that was
 * made without a way out gets one, unless a process inside has taken its port. What can't be done leaves everything as it was.
 * @throws SandlotError `network_unchanged`, `sandbox_paused`, `sandbox_gone`
 */
function setNetwork(
  parts: NetworkParts,
  entry: Entry,
  policy: NetworkPolicy,
): Promise<NetworkInForce> {
  return entry.alone(async () => {
    const sandbox = settable(entry)
    const before = entry.record
    const network = { ...before.network, [before.phase]: policy }
    const wayOut = hasNetwork(before) || hasNetwork({ network })
    // First what a restart finds: it must not give back what was taken.
    await put(parts, entry, { ...entry.counted, network, ...(wayOut ? { wayOut } : {}) })
    try {
      if (entry.network) await entry.network.enter(policy, 'main')
      else await openNetwork(parts, entry, sandbox)
    } catch (error) {
      await takeBack(parts, entry, before)
      throw unchanged(entry, error)
    }
    const journal = await journalOf(parts, entry)
    journal.policyChanged(entry.record.phase)
    return networkInForce(entry)
  })
}

/**
 * What decides at this moment, as the relay itself has it.
 * @throws SandlotError `sandbox_paused`, `sandbox_gone`
 */
export function networkInForce(entry: Entry): NetworkInForce {
  const { network, record } = running(entry).entry
  // Without a way out there is nothing that could decide otherwise.
  const { policy, limits } = network?.inForce ?? { policy: 'none', limits: limitsInForce('none') }
  return {
    ...{ phase: record.phase, policy, limits },
    connections: network?.connections ?? 0,
    bytes: entry.networkBytes,
  }
}

function settable(entry: Entry): Sandbox {
  const { sandbox } = running(entry)
  const { owner } = entry.record
  if (isOpenNetwork(entry.record.network)) {
    throw new SandlotError(
      'network_unchanged',
      `the sandbox ${entry.id} has an open network, by an interface that it was created with`,
      { hint: 'Create another sandbox with the policy that it should have.' },
    )
  }
  if (owner === CLIENT) return sandbox
  throw new SandlotError(
    'network_unchanged',
    `the sandbox ${entry.id} belongs to ${owner}, whose phases say what it may reach`,
    { hint: 'Give the run, or the function, another `network`: each phase has its own.' },
  )
}

function running(entry: Entry): { readonly entry: Entry; readonly sandbox: Sandbox } {
  const { sandbox, state } = entry
  if (state === 'paused') throw pausedError(entry.id)
  if (!sandbox || state !== 'running') throw goneError(undefined, entry.id)
  return { entry, sandbox }
}

async function put(parts: NetworkParts, entry: Entry, record: OwnershipRecord): Promise<void> {
  const before = entry.record
  entry.record = record
  try {
    await parts.ownership.put(record)
  } catch (error) {
    entry.record = before
    throw error
  }
}

/** What was in force is again; where not even that can be, nothing is allowed. */
async function takeBack(parts: NetworkParts, entry: Entry, before: OwnershipRecord): Promise<void> {
  const { network } = entry
  try {
    await put(parts, entry, { ...before, ...(network ? { wayOut: true as const } : {}) })
    await network?.enter(relayPolicy(before.network, before.phase), 'main')
  } catch (error) {
    parts.log.error({ err: error, sandbox: entry.id }, 'the network of a sandbox is closed')
    await entry.closeNetwork()
  }
}

function unchanged(entry: Entry, error: unknown): SandlotError {
  const why = error instanceof Error ? error.message : String(error)
  const hint = entry.network
    ? 'What commands need of the policy could not be written into the sandbox: see the message.'
    : `It was made without a network, and a process inside has the port ${NETWORK_LIMITS.port} of its way out: end that one, or create the sandbox with a policy.`
  return new SandlotError('network_unchanged', `the policy can't be enforced: ${why}`, {
    hint,
    cause: error,
  })
}
