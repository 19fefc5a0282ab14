import type { Entry } from '../node/entry.ts'
import { type Copies, type Forked, startCopies } from '../node/fork.ts'
import type { SandboxCall } from '../sandboxes/use.ts'
import { type SnapshotServices, takeFilesystem } from './take.ts'

/**
 * Copies of a running sandbox's files, each in a sandbox of its own that begins as the original was started: with its resources,
 * environment, network and times. The original goes on. Each copy comes up or fails by itself.
 */
export async function forkFilesystem(
  services: SnapshotServices,
  call: SandboxCall,
  original: Entry,
  copies: Copies,
): Promise<readonly Forked[]> {
  const { node, snapshots } = services
  return await snapshots.whileMaking(async () => {
    const taken = await takeFilesystem(services, call, { kind: 'filesystem' })
    try {
      return await startCopies(node.sandboxes, original, copies, { image: taken.image })
    } finally {
      // From now on only the copies keep its files.
      await snapshots.remove(taken.project, taken.id, true).catch(() => {})
    }
  })
}
