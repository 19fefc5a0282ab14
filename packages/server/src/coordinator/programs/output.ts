import type { Engine } from '@sandlot/engine'
import type { Artifact } from '@sandlot/protocol'
import type { NodeExecEnd } from '../../node/port.ts'

/** Stores what a command said, under these names; of a silent channel nothing. Whoever takes it has to pin it. */
export async function storeOutput(
  engine: Pick<Engine, 'blobs'>,
  end: Pick<NodeExecEnd, 'stdout' | 'stderr'>,
  names: { readonly stdout: string; readonly stderr: string },
): Promise<Artifact[]> {
  const stored: Artifact[] = []
  for (const channel of ['stdout', 'stderr'] as const) {
    const bytes = end[channel]
    if (bytes.length === 0) continue
    const { digest, sizeBytes } = await engine.blobs.put(bytes)
    stored.push({ name: names[channel], blob: digest, sizeBytes })
  }
  return stored
}
