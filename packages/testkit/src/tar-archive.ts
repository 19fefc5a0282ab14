/** Builds tar archives for tests, hostile ones included: nothing is checked. */
export interface TarMember {
  /** One character is one byte. */
  readonly path: string
  /** The tar type flag. Default: `5` when the path ends with a slash, else `0`. */
  readonly type?: string
  readonly content?: string | Uint8Array
  readonly linkPath?: string
  readonly mode?: number
  readonly uid?: number
  readonly gid?: number
  readonly mtimeSeconds?: number
  readonly device?: readonly [major: number, minor: number]
  /** Sent in a pax header before the entry. */
  readonly pax?: Readonly<Record<string, string>>
}

const RECORD_BYTES = 512

/** A whole archive with its end marker. Paths over 100 bytes travel in a pax header. */
export function tarArchive(members: readonly TarMember[]): Buffer {
  return Buffer.concat([...members.flatMap(tarMember), Buffer.alloc(2 * RECORD_BYTES)])
}

/** The records of one entry. */
export function tarMember(member: TarMember): Buffer[] {
  const content = Buffer.from((member.content ?? '') as string)
  const long = {
    ...(member.path.length > 100 && { path: member.path }),
    ...((member.linkPath?.length ?? 0) > 100 && { linkpath: member.linkPath ?? '' }),
  }
  const pax = { ...long, ...member.pax }
  return [
    ...(Object.keys(pax).length > 0 ? paxHeader(pax) : []),
    header(member, content.length),
    padded(content),
  ]
}

function paxHeader(records: Readonly<Record<string, string>>): Buffer[] {
  const body = Buffer.from(Object.entries(records).map(paxRecord).join(''), 'latin1')
  return [header({ path: 'pax', type: 'x' }, body.length), padded(body)]
}

/** The length counts its own digits. */
function paxRecord([key, value]: [string, string]): string {
  const rest = ` ${key}=${value}\n`
  let length = rest.length + 1
  while (`${length}${rest}`.length !== length) length += 1
  return `${length}${rest}`
}

function header(member: TarMember, sizeBytes: number): Buffer {
  const out = Buffer.alloc(RECORD_BYTES)
  const octal = (value: number, at: number, length: number): void => {
    out.write(value.toString(8).padStart(length - 1, '0'), at, 'latin1')
  }
  out.write(member.path.slice(0, 100), 0, 'latin1')
  octal(member.mode ?? (member.path.endsWith('/') ? 0o755 : 0o644), 100, 8)
  octal(member.uid ?? 0, 108, 8)
  octal(member.gid ?? 0, 116, 8)
  octal(sizeBytes, 124, 12)
  octal(member.mtimeSeconds ?? 1_700_000_000, 136, 12)
  out.write(member.type ?? (member.path.endsWith('/') ? '5' : '0'), 156, 'latin1')
  out.write((member.linkPath ?? '').slice(0, 100), 157, 'latin1')
  out.write('ustar\u000000', 257, 'latin1')
  octal(member.device?.[0] ?? 0, 329, 8)
  octal(member.device?.[1] ?? 0, 337, 8)
  out.write('        ', 148, 'latin1')
  const sum = out.reduce((total, byte) => total + byte, 0)
  octal(sum, 148, 7)
  return out
}

function padded(content: Buffer): Buffer {
  return Buffer.concat([
    content,
    Buffer.alloc((RECORD_BYTES - (content.length % RECORD_BYTES)) % RECORD_BYTES),
  ])
}
