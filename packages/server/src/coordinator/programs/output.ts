import type { Artifact } from '@sandlot/protocol'
import type { NodeExecEnd } from '../../node/port.ts'
import type { SandboxWork } from '../sandboxes.ts'

/**
 * Keeps what a command said for as long as the run, under these names; of a silent channel nothing. What can't be kept costs nobody a
 * result.
 */
export async function keepOutput(
  { engine, keepBlob, record, warn }: SandboxWork,
  end: Pick<NodeExecEnd, 'stdout' | 'stderr'>,
  names: { readonly stdout: string; readonly stderr: string },
): Promise<Artifact[]> {
  const kept: Artifact[] = []
  try {
    for (const channel of ['stdout', 'stderr'] as const) {
      const bytes = end[channel]
      if (bytes.length === 0) continue
      const { digest, sizeBytes } = await engine.blobs.put(bytes)
      await keepBlob(digest)
      kept.push({ name: names[channel], blob: digest, sizeBytes })
    }
  } catch (error) {
    warn(`could not keep the output of a program of ${record.name}`, error)
  }
  return kept
}
