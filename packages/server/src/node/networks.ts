import type { Clock } from '@sandlot/engine'
import { NETWORK_PHASES, type NetworkPhase, relayPolicy } from '@sandlot/protocol'
import {
  allowsAnything,
  type InnerServer,
  type MachineNetwork,
  type ModelEndpoint,
  type RelayNews,
  type Sandbox,
  SandboxNetwork,
} from '@sandlot/runtime'
import type { Logger } from 'pino'
import type { Secrets } from '../secrets/secrets.ts'
import type { Entry } from './entry.ts'
import type { NetworkJournal } from './network-journal.ts'
import type { NetworkJournals } from './network-journals.ts'
import { connectionLog } from './network-log.ts'
import type { News } from './news.ts'
import type { NodeNumbers } from './numbers.ts'
import type { Ownership, OwnershipRecord } from './ownership.ts'
import type { GraderWorld, ModelCall } from './port.ts'

export interface NetworkParts {
  readonly clock: Clock
  readonly network: MachineNetwork
  readonly ownership: Ownership
  readonly journals: NetworkJournals
  /** Absent: no sandbox has any. */
  readonly secrets?: Secrets | undefined
  readonly numbers: NodeNumbers
  readonly log: Logger
  readonly modelNews: News<ModelCall>
  /** The API, for sandboxes on whose loopback it answers. */
  readonly inside?: (() => InnerServer | undefined) | undefined
}

/** Whether any phase of the sandbox may reach anything, or it has a model, reaches the API, or could before: only then it has a way out at all. */
export function hasNetwork({
  network,
  model,
  wayOut,
  reachesApi,
}: Pick<OwnershipRecord, 'network' | 'model' | 'wayOut' | 'reachesApi'>): boolean {
  return (
    wayOut === true ||
    reachesApi === true ||
    model !== undefined ||
    NETWORK_PHASES.some((phase) => allowsAnything(relayPolicy(network, phase)))
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
  const onNews = await listener(parts, entry)
  const secrets = await parts.secrets?.relayed(record.project, record.secrets, () =>
    parts.network.trusted(),
  )
  entry.network = await SandboxNetwork.open(
    sandbox.guest,
    {
      machine: parts.network,
      policy: relayPolicy(record.network, record.phase),
      world: entry.gradeOpened ? 'grade' : 'main',
      spentBytes: entry.networkBytes,
      onNews,
      ...(secrets ? { secrets } : {}),
      ...modelOf(parts, entry),
      ...serverOf(parts, entry),
    },
    wait,
  )
}

/** The log of its connections that its owner reads. */
export async function journalOf(
  { journals, clock }: Pick<NetworkParts, 'journals' | 'clock'>,
  entry: Entry,
): Promise<NetworkJournal> {
  const found = entry.journal ?? (await journals.open(entry.id, () => clock.now()))
  entry.journal ??= found
  return entry.journal
}

const OF_LIMITS: ReadonlySet<RelayNews['outcome']> = new Set(['limit', 'rate_limit', 'bytes_limit'])

/** Told of what a sandbox asks of its network. */
export async function listener(
  parts: Pick<NetworkParts, 'clock' | 'log' | 'numbers' | 'journals'>,
  entry: Entry,
): Promise<(news: RelayNews) => void> {
  const { clock, log, numbers } = parts
  const journal = await journalOf(parts, entry)
  const logged = connectionLog({ log, now: () => clock.now() }, entry.id)
  return (news) => {
    numbers.connected(news.outcome)
    logged(news)
    journal.note(news, entry.record.phase)
    if (OF_LIMITS.has(news.outcome)) entry.flags.add('network')
  }
}

/** It has ended: its connections are closed, and what it asked for is written down for the last time. Never rejects. */
export async function closeJournal(
  { journals, log }: Pick<NetworkParts, 'journals' | 'log'>,
  entry: Entry,
): Promise<void> {
  await entry.closeNetwork()
  if (!entry.journal) return
  await journals.finish(entry.id, entry.journal).catch((err) => {
    log.warn({ err, sandbox: entry.id }, 'the log of a network could not be written down')
  })
}

/** A grader has no model: what calls it then is what the episode left. */
function modelOf({ modelNews }: NetworkParts, entry: Entry): { model?: ModelEndpoint } {
  const { model } = entry.record
  if (model === undefined) return {}
  return {
    model: {
      url: new URL(model),
      // A sandbox that lived on may call before it is known again whose attempt that is.
      ready: modelNews.heard,
      isOpen: () => !entry.gradeOpened,
      onNews: (news) => modelNews.tell({ sandbox: entry.id, ...news }),
    },
  }
}

function serverOf({ inside }: NetworkParts, entry: Entry): { server?: InnerServer } {
  const server = entry.record.reachesApi ? inside?.() : undefined
  return server ? { server } : {}
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
    entry.journal?.policyChanged(phase)
  }
  await network.enter(relayPolicy(entry.record.network, phase), world)
}
