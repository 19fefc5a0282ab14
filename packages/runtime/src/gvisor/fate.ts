import { open } from 'node:fs/promises'
import type { MemoryEvidence } from '../cgroup/cgroups.ts'
import type { FateKind } from '../driver.ts'
import { RUNTIME_LIMITS } from '../limits.ts'

/** What is known about an end when its sandbox is certainly dead and its cgroup still there. */
export interface EndEvidence {
  /** Why the driver ended it, or how it noticed its end. */
  readonly cause: 'stop' | 'protocol' | 'lost'
  readonly memory: MemoryEvidence
  /** The agent's and the runtime's last words. */
  readonly lastWords: string
}

/** What an agent that ends itself writes last. */
const EXPIRED = /agent: expired/

/**
 * Memory comes first, whoever noticed: a kill by the kernel before ours is what ended it. That it was the
 * sandbox's own doing needs both the kill and the limit; a kill without the limit is the machine's.
 */
export function judgeFate(end: EndEvidence): { kind: FateKind; detail: string } {
  const { memory } = end
  if (memory.oomKills > 0) {
    const kind = memory.limitHit ? 'oom_limit' : 'oom_host'
    return { kind, detail: memoryDetail(memory) }
  }
  if (end.cause === 'stop') return { kind: 'stopped', detail: 'stop was called' }
  if (EXPIRED.test(end.lastWords)) return { kind: 'expired', detail: end.lastWords }
  const detail = end.lastWords || 'it ended without a word; killed from outside?'
  return { kind: end.cause === 'protocol' ? 'protocol' : 'lost', detail }
}

function memoryDetail(memory: MemoryEvidence): string {
  const mib = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MiB`
  const limit = memory.limitHit ? 'its limit was hit' : 'its limit was not hit'
  return `oom_kill ${memory.oomKills}, peak ${mib(memory.peakBytes)} of ${mib(memory.limitBytes)}: ${limit}`
}

/** The end of each log, newest last, as one line. */
export async function lastWords(paths: readonly string[]): Promise<string> {
  const texts = await Promise.all(paths.map((path) => readTail(path).catch(() => '')))
  const text = texts.join('\n').replaceAll(/\s*\n\s*/g, ' | ')
  return text.replace(/^[ |]+|[ |]+$/g, '').slice(-RUNTIME_LIMITS.evidenceChars)
}

async function readTail(path: string): Promise<string> {
  await using file = await open(path, 'r')
  const { size } = await file.stat()
  const tail = Buffer.alloc(Math.min(size, RUNTIME_LIMITS.evidenceChars))
  await file.read(tail, 0, tail.length, size - tail.length)
  return tail.toString()
}
