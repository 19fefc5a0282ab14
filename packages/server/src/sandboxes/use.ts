import { checkedId } from '../http/checked-id.ts'
import type { Caller } from '../http/keys.ts'
import type { Lent } from '../node/lend.ts'
import type { Node } from '../node/node.ts'

/** What a request says of the sandbox it is for. */
export interface SandboxCall {
  readonly params: Readonly<Record<string, string>>
  readonly caller: Caller
  readonly signal: AbortSignal
}

/** @throws SandlotError `sandbox_unknown` for what is no id of a sandbox */
export function sandboxIdOf(text: string | undefined): string {
  return checkedId('sandbox', text)
}

/** Lends the sandbox of a call; its failures are told in the catalogue's words. */
export async function withSandbox<T>(
  node: Node,
  call: SandboxCall,
  use: (lent: Lent) => Promise<T>,
): Promise<T> {
  using lent = await lendFor(node, call)
  try {
    return await use(lent)
  } catch (error) {
    throw await lent.explain(error)
  }
}

export async function lendFor(
  node: Node,
  {
    params,
    caller,
    signal,
  }: Pick<SandboxCall, 'params' | 'signal'> & { readonly caller: Pick<Caller, 'project'> },
): Promise<Lent> {
  return await node.sandboxes.lend(sandboxIdOf(params.id), { project: caller.project, signal })
}

/** A stream out of a sandbox, which is kept warm until the stream's end. */
export async function* streamOut<T>(
  lent: Lent,
  open: (lent: Lent) => AsyncIterable<T> | Promise<AsyncIterable<T>>,
): AsyncGenerator<T> {
  try {
    yield* await open(lent)
  } catch (error) {
    throw await lent.explain(error)
  } finally {
    lent[Symbol.dispose]()
  }
}
