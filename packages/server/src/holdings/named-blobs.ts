import { SandlotError } from '@sandlot/protocol'
import type { Holdings } from './holdings.ts'

/**
 * Refuses a request that names contents which its project doesn't hold, as if they weren't there: all at once, so that a client sends
 * what is lacking and asks again.
 * @throws SandlotError `blob_unknown`
 */
export async function requireNamedBlobs(
  holdings: Holdings,
  project: string,
  body: unknown,
): Promise<void> {
  if (!holdings.isShared) return
  const blobs: string[] = []
  for (const digest of namedBlobs(body)) {
    if (!(await holdings.holds('blob', project, digest))) blobs.push(digest)
  }
  if (blobs.length === 0) return
  const more = blobs.length === 1 ? '' : ` and ${blobs.length - 1} more`
  throw new SandlotError('blob_unknown', `no content ${blobs[0]}${more}`, { details: { blobs } })
}

/** Digests that a parsed body names, wherever in it. */
export function namedBlobs(body: unknown): Set<string> {
  const digests = new Set<string>()
  const left: unknown[] = [body]
  while (left.length > 0) {
    const value = left.pop()
    if (typeof value !== 'object' || value === null) continue
    for (const [name, child] of Object.entries(value)) {
      if (FREE.has(name)) continue
      if (NAMES.has(name) && typeof child === 'string' && DIGEST.test(child)) digests.add(child)
      else left.push(child)
    }
  }
  return digests
}

/** As the protocol calls a digest in a request. */
const NAMES: ReadonlySet<string> = new Set(['blob', 'bundle'])
/** Maps whose names are the client's own. */
const FREE: ReadonlySet<string> = new Set(['env', 'tags'])
const DIGEST = /^sha256:[0-9a-f]{64}$/
