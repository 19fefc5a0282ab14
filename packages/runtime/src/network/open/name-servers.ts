import ipaddr from 'ipaddr.js'
import { textOf } from '../packages/machine-files.ts'

/** Asked where the machine's own are in its private network, which no sandbox reaches. */
export const PUBLIC_NAME_SERVERS: readonly string[] = ['1.1.1.1', '8.8.8.8']

const SERVERS_MAX = 3

/** Whom a sandbox with an interface of its own asks for names: those set, else those of the machine that it can reach. */
export async function openNameServers(
  set: readonly string[] | undefined,
  resolvPath = '/etc/resolv.conf',
): Promise<readonly string[]> {
  if (set && set.length > 0) return set.slice(0, SERVERS_MAX)
  const found = [...(await textOf(resolvPath)).matchAll(/^nameserver[ \t]+(\S+)/gm)]
  const usable = found.map(([, server = '']) => server).filter(isPublic)
  return usable.length > 0 ? usable.slice(0, SERVERS_MAX) : PUBLIC_NAME_SERVERS
}

function isPublic(address: string): boolean {
  return ipaddr.IPv4.isValid(address) && ipaddr.IPv4.parse(address).range() === 'unicast'
}
