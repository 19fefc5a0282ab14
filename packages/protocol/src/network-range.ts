/** An address as a number. */
export interface AddressBits {
  readonly value: bigint
  readonly length: 32 | 128
}

/**
 * Networks of which no entry is: what is in them is the machine itself or on its wire, means many at once, or is an IPv4 address in
 * another form. An address of theirs that is named by itself is reached all the same.
 */
const BEYOND = [
  ...['0.0.0.0/8', '127.0.0.0/8', '169.254.0.0/16', '224.0.0.0/4', '240.0.0.0/4'],
  ...['[::]/96', '[::ffff:0:0]/96', '[fe80::]/10', '[ff00::]/8'],
].map((text) => {
  const [address = '', prefix] = text.split('/')
  return { bits: addressBits(address) as AddressBits, prefix: Number(prefix) }
})

/** Whether all of a network is among those. */
export function isBeyondNetworks({ value, length }: AddressBits, prefix: number): boolean {
  return BEYOND.some(({ bits, prefix: least }) => {
    const shift = BigInt(length - least)
    return bits.length === length && prefix >= least && value >> shift === bits.value >> shift
  })
}

/** Of an address in the spelling of a browser, IPv6 in brackets; undefined for what is none. */
export function addressBits(text: string): AddressBits | undefined {
  if (text.startsWith('[')) return ipv6Bits(text.slice(1, -1))
  const parts = text.split('.')
  if (parts.length !== 4 || !parts.every((part) => /^[0-9]{1,3}$/.test(part))) return undefined
  const value = parts.reduce((sum, part) => (sum << 8n) | BigInt(part), 0n)
  return { value, length: 32 }
}

function ipv6Bits(text: string): AddressBits | undefined {
  const [head = '', tail] = text.split('::')
  const groups = (part: string) => (part === '' ? [] : part.split(':'))
  const [before, after] = [groups(head), groups(tail ?? '')]
  const missing = tail === undefined ? 0 : 8 - before.length - after.length
  const all = [...before, ...Array<string>(Math.max(0, missing)).fill('0'), ...after]
  if (all.length !== 8 || !all.every((group) => /^[0-9a-f]{1,4}$/i.test(group))) return undefined
  const value = all.reduce((sum, group) => (sum << 16n) | BigInt(`0x${group}`), 0n)
  return { value, length: 128 }
}
