import type { Clock } from '@sandlot/engine'
import { NETWORK_PHASES, type NetworkPhase } from '@sandlot/protocol'
import {
  allowsAnything,
  type MachineNetwork,
  type ModelEndpoint,
  type Sandbox,
  SandboxNetwork,
} from '@sandlot/runtime'
import type { Logger } from 'pino'
import type { Entry } from './entry.ts'
import { connectionLog } from './network-log.ts'
import type { News } from './news.ts'
import type { NodeNumbers } from './numbers.ts'
import type { Ownership, OwnershipRecord } from './ownership.ts'
import type { GraderWorld, ModelCall } from './port.ts'

export interface NetworkParts {
  readonly clock: Clock
  readonly network: MachineNetwork
  readonly ownership: Ownership
  readonly numbers: NodeNumbers
  readonly log: Logger
  readonly modelNews: News<ModelCall>
}

/** Whether any phase of the sandbox may reach anything, or it has a model: only then it has a way out at all. */
export function hasNetwork({
  network,
  model,
}: Pick<OwnershipRecord, 'network' | 'model'>): boolean {
  return (
    model !== undefined || NETWORK_PHASES.some((phase) => allowsAnything(network[phase] ?? 'none'))
  )
}

/** Gives a sandbox its way out, by the policy of the phase that it is in. */
export async function openNetwork(
  parts: NetworkParts,
  entry: Entry,
  sandbox: Sandbox,
  wait: { readonly signal?: AbortSignal } = {},
): Promise<void> {
  const { record } = entry
  if (!hasNetwork(record)) return
  const { clock, log, numbers } = parts
  const logged = connectionLog({ log, now: () => clock.now() }, entry.id)
  entry.network = await SandboxNetwork.open(
    sandbox.guest,
    {
      machine: parts.network,
      policy: record.network[record.phase] ?? 'none',
      world: entry.gradeOpened ? 'grade' : 'main',
      onNews: (news) => {
        numbers.connected(news.outcome)
        logged(news)
      },
      ...modelOf(parts, entry),
    },
    wait,
  )
}

/** A grader has no model: what calls it then is what the episode left. */
function modelOf({ modelNews }: NetworkParts, entry: Entry): { model?: ModelEndpoint } {
  const { model } = entry.record
  if (model === undefined) return {}
  return {
    model: {
      url: new URL(model),
      isOpen: () => !entry.gradeOpened,
      onNews: (news) => modelNews.tell({ sandbox: entry.id, ...news }),
    },
  }
}

/** The same for one that an earlier daemon left. Without its way out it is still what its owner has. */
export async function reopenNetwork(
  parts: NetworkParts,
  entry: Entry,
  sandbox: Sandbox,
): Promise<void> {
  try {
    await openNetwork(parts, entry, sandbox)
  } catch (error) {
    parts.log.warn({ err: error, sandbox: entry.id }, 'an adopted sandbox has no network')
  }
}

/** The sandbox is in another phase, or its commands run in another world now. Asked again it does the same again. */
export async function enterPhase(
  parts: NetworkParts,
  entry: Entry,
  { phase, world }: { readonly phase: NetworkPhase; readonly world: 'main' | GraderWorld },
): Promise<void> {
  const { network } = entry
  if (!network) return
  if (entry.record.phase !== phase) {
    entry.record = { ...entry.counted, phase }
    // First what a restart finds: it must not give an agent what its set-up had.
    await parts.ownership.put(entry.record)
  }
  await network.enter(entry.record.network[phase] ?? 'none', world)
}
