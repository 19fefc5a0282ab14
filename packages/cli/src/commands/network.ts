/** `sandlot sandbox network …`. */
import {
  formatDuration,
  formatSize,
  type NetworkInForce,
  type NetworkLogEntry,
  type NetworkPolicyInput,
} from '@sandlot/protocol'
import { Sandlot, SandlotError } from 'sandlot'
import { printJson, printLine } from '../output/terminal.ts'
import { interruption } from './interruption.ts'
import { given } from './options.ts'

export interface PolicyOptions {
  readonly allow?: readonly string[]
  readonly packages?: boolean
  readonly connections?: number
  readonly connectionsPerMinute?: number
  readonly bytes?: string
  readonly bytesPerSecond?: string
}

/** The policy that these options say; undefined where they say none. */
export function policyOf(options: PolicyOptions): NetworkPolicyInput | undefined {
  const { allow = [], packages, connections, connectionsPerMinute, bytes, bytesPerSecond } = options
  const limits = given({ connections, connectionsPerMinute, bytes, bytesPerSecond })
  const isLimited = Object.keys(limits).length > 0
  if (allow.length === 0 && !packages) {
    if (!isLimited) return undefined
    throw new SandlotError('invalid_request', 'limits of a network that reaches nothing', {
      hint: 'Say what it may reach, with --allow HOST or --packages.',
    })
  }
  if (allow.length === 0 && !isLimited) return 'packages'
  return {
    allow: [...allow],
    ...(packages ? { packages } : {}),
    ...(isLimited ? { limits } : {}),
  }
}

export interface NetworkLogCommandOptions {
  readonly follow?: boolean
  readonly from?: number
  readonly json?: boolean
}

/** Prints what a sandbox asked of its network, a line each. */
export async function networkLogCommand(
  id: string,
  { follow, from, json }: NetworkLogCommandOptions,
): Promise<void> {
  await using client = new Sandlot()
  using interrupted = interruption()
  const { signal } = interrupted
  const sandbox = await client.sandboxes.get(id)
  for await (const entry of sandbox.network.log({ signal, ...given({ follow, from }) })) {
    printLine(json ? JSON.stringify(entry) : lineOf(entry))
  }
}

export interface NetworkSetOptions extends PolicyOptions {
  readonly none?: boolean
}

/** Prints what is in force then. */
export async function networkSetCommand(id: string, options: NetworkSetOptions): Promise<void> {
  const policy = policyOf(options)
  if ((policy === undefined) === !options.none) {
    throw new SandlotError('invalid_request', 'say one policy: --none, or what it may reach', {
      hint: 'sandlot sandbox network set ID --allow api.example.org, or --packages, or --none.',
    })
  }
  await using client = new Sandlot()
  const sandbox = await client.sandboxes.get(id)
  const inForce: NetworkInForce = await sandbox.network.set(policy ?? 'none')
  printJson(inForce)
}

/** What decides at this moment, as JSON. */
export async function networkShowCommand(id: string): Promise<void> {
  await using client = new Sandlot()
  printJson(await (await client.sandboxes.get(id)).network.inForce())
}

function lineOf(entry: NetworkLogEntry): string {
  const head = `${new Date(entry.atMs).toISOString()} #${entry.seq}`
  switch (entry.kind) {
    case 'dropped':
      return `${head} dropped  ${entry.count} lines are not here`
    case 'policy':
      return `${head} policy   another one is in force, phase ${entry.phase}`
    case 'refused':
      return `${head} refused  ${named(entry)}: ${entry.reason}: ${entry.detail}`
    case 'opened':
      return `${head} opened   ${named(entry)} by ${entry.rule}, at ${entry.address}`
    case 'closed': {
      const { sentBytes, receivedBytes, durationMs } = entry
      return `${head} closed   ${named(entry)} (#${entry.opened}): ${formatSize(sentBytes)} out, ${formatSize(receivedBytes)} in, ${formatDuration(durationMs)}`
    }
  }
}

function named(entry: Extract<NetworkLogEntry, { target: string }>): string {
  return `${entry.target || 'no target'} (${entry.protocol}, ${entry.phase})`
}
