import { createHash } from 'node:crypto'
import { copiedEntryLine } from '@sandlot/protocol'
import type { TarMember } from './tar-archive.ts'

const sha256 = (content: string | Uint8Array) => createHash('sha256').update(content).digest('hex')

/** What a copy of plain files and directories is known by, as its client says it. */
export function copiedContent(members: readonly TarMember[]): string {
  const lines = members.map(({ path, content = '', mode, uid = 0, gid = 0 }) => {
    const isDirectory = path.endsWith('/')
    const kind = isDirectory ? 'directory' : 'file'
    const own = { kind, path: path.replace(/\/$/, ''), mode: mode ?? (isDirectory ? 0o755 : 0o644) }
    const bytes = { sizeBytes: Buffer.byteLength(content as string), sha256: sha256(content) }
    return copiedEntryLine({ ...own, uid, gid, ...(isDirectory ? {} : bytes) })
  })
  return `sha256:${sha256(lines.join(''))}`
}
