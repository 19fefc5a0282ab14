import type { Entry } from './entry.ts'
import type { Lent } from './lend.ts'
import type { NodeSandboxes } from './sandboxes.ts'

/** Work on a sandbox that lives. What fails because it has ended says how it did. */
export async function onEntry(
  sandboxes: NodeSandboxes,
  sandbox: string,
  work: (lent: Lent, entry: Entry) => Promise<unknown>,
): Promise<void> {
  using lent = await sandboxes.lend(sandbox)
  const entry = sandboxes.entries.get(sandbox)
  if (!entry) return
  try {
    await work(lent, entry)
  } catch (error) {
    throw await lent.explain(error)
  }
}
