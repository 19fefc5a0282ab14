import type { ProbeFinding } from '../../driver.ts'
import { FORWARD_MEND, forwards } from './open-network.ts'
import { ip, nft } from './programs.ts'
import { rulesText } from './rules.ts'

const FOUND = 'interfaces of their own for sandboxes with network: open'

/** Whether sandboxes can have interfaces of their own here: nothing is made to find out. Only those with `network: 'open'` need it. */
export async function probeOpenNetwork(addresses: string): Promise<ProbeFinding> {
  const lack = await lackOf(addresses)
  const name = 'open network'
  if (lack === undefined) return { name, ok: true, found: FOUND, required: false }
  return { name, ok: false, ...lack, required: false }
}

type Lack = Pick<ProbeFinding, 'found' | 'mend'>

async function lackOf(addresses: string): Promise<Lack | undefined> {
  if ((await ip(['-V'])).problem !== undefined)
    return { found: 'no ip', mend: 'apt-get install iproute2' }
  if ((await nft(['--version'])).problem !== undefined) {
    return { found: 'no nft', mend: 'apt-get install nftables' }
  }
  const rules = (['router', 'machine'] as const).map((at) =>
    rulesText('probe', addresses, at === 'router' ? { at, own: [] } : { at }),
  )
  const { problem: found } = await nft(['--check', '-f', '-'], rules.join(''))
  if (found !== undefined) {
    return {
      found: `nft can’t load the rules: ${found}`,
      mend: 'run the daemon as root with CAP_NET_ADMIN, on a kernel with nf_tables (nat, fib, ct)',
    }
  }
  if (!(await forwards())) {
    return { found: 'the machine passes no packets on', mend: FORWARD_MEND }
  }
  return await otherFirewall()
}

/** Docker's, for one, drops what it doesn't know; another table can't overrule that. */
async function otherFirewall(): Promise<Lack | undefined> {
  const { stdout } = await nft(['list', 'chain', 'ip', 'filter', 'FORWARD'])
  if (!stdout.includes('policy drop') || /[io]ifname "sl/.test(stdout)) return undefined
  return {
    found: 'another firewall of this machine drops what is passed on',
    mend: 'iptables -I FORWARD -i sl+ -j ACCEPT && iptables -I FORWARD -o sl+ -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT',
  }
}
