/** What the format says of the network → a policy. */
import { type NetworkPolicy, parseNetworkHost } from '@sandlot/protocol'
import { SETTINGS_FILE } from './format.ts'
import type { Problems } from './problems.ts'
import type { EnvironmentSettings, PhaseSettings } from './settings.ts'
import type { HarborNetwork } from './task.ts'

/** Of an environment: the whole internet unless it says otherwise. */
export function baselineNetwork(
  settings: EnvironmentSettings,
  at: string,
  problems: Problems,
): HarborNetwork {
  const own = phaseNetwork(settings, at, problems)
  return own ?? (settings.allow_internet === false ? 'none' : 'open')
}

/** Of a phase; undefined where it says nothing. */
export function phaseNetwork(
  {
    network_mode: mode,
    allowed_hosts: hosts,
  }: Pick<PhaseSettings, 'network_mode' | 'allowed_hosts'>,
  at: string,
  problems: Problems,
): HarborNetwork | undefined {
  if (mode === 'public') return 'open'
  if (mode === 'no-network') return 'none'
  if (mode === undefined && (hosts === undefined || hosts.length === 0)) return undefined
  for (const [index, host] of (hosts ?? []).entries()) {
    const found = parseNetworkHost(host)
    if ('problem' in found)
      problems.add(SETTINGS_FILE, found.problem, `${at}.allowed_hosts[${index}]`)
  }
  return { allow: [...(hosts ?? [])] }
}

/** What a sandbox reaches. `open`: where the format gives the whole internet. */
export function policyOf(network: HarborNetwork, open: NetworkPolicy): NetworkPolicy {
  return network === 'open' ? open : network
}
