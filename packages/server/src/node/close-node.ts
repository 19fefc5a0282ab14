import { writeNetworkBytes } from './network-bytes.ts'
import type { Node } from './node.ts'
import type { NodeParts } from './sandboxes.ts'

/** Ends the pool, and every sandbox where `sandboxes` says so; else the next daemon finds them. */
export async function closeNode(
  parts: NodeParts,
  node: Pick<Node, 'pool' | 'sandboxes' | 'meter'>,
  closing: { readonly periodic: Disposable; readonly sandboxes: 'stop' | 'keep' },
): Promise<void> {
  try {
    await close(parts, node, closing)
  } finally {
    await node.meter.ledger.flush()
  }
}

async function close(
  parts: NodeParts,
  node: Pick<Node, 'pool' | 'sandboxes'>,
  { periodic, sandboxes }: { readonly periodic: Disposable; readonly sandboxes: 'stop' | 'keep' },
): Promise<void> {
  periodic[Symbol.dispose]()
  await node.pool.close()
  const { entries } = node.sandboxes
  if (sandboxes === 'keep') {
    node.sandboxes.letGo()
    return await writeNetworkBytes(parts, entries)
  }
  const stop = { kind: 'shutdown', detail: 'the daemon was stopped' } as const
  // Nothing of a paused one is in this machine; it waits for the next daemon.
  const all = [...entries.values()].filter(({ state }) => state !== 'paused')
  await Promise.allSettled(all.map(({ id }) => node.sandboxes.end(id, stop)))
}
