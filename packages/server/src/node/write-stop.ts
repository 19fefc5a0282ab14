import type { Entry } from './entry.ts'
import type { NodeParts } from './sandboxes.ts'

/**
 * Writes down that somebody ends a sandbox, and why, before it is killed: a daemon that finds it dead would take it for lost otherwise,
 * and have an attempt made again whose verdict was given. Never rejects: a full disk keeps nobody from ending a sandbox.
 */
export async function writeStop(
  { ownership, log }: Pick<NodeParts, 'ownership' | 'log'>,
  entry: Entry,
): Promise<void> {
  const { stop } = entry
  if (!stop) return
  entry.record = { ...entry.counted, stop }
  await ownership.put(entry.record).catch((err) => {
    log.warn({ err, sandbox: entry.id }, 'that a sandbox is to end could not be written down')
  })
}
