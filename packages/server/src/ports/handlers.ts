import type { Handlers } from '../http/call.ts'
import type { Node } from '../node/node.ts'
import { lendFor, sandboxIdOf, withSandbox } from '../sandboxes/use.ts'
import { originUrl, type PortPlaces, tokenUrl } from './port-places.ts'
import type { PortTokens } from './port-token.ts'
import { checkPort, listPorts } from './ports.ts'

/** What a client asks about ports; what goes to them is the gate's (`port-gate.ts`). */
export function portHandlers(parts: {
  readonly node: Node
  readonly tokens: PortTokens
  readonly places: PortPlaces
  readonly now: () => number
}): Pick<Handlers, 'listPorts' | 'signPortUrl'> {
  const { node, tokens, places, now } = parts
  return {
    listPorts: (call) =>
      withSandbox(node, call, async (lent) => ({
        items: await listPorts(lent, { signal: call.signal }),
        next: null,
      })),
    signPortUrl: async (call) => {
      const { port, expires, path } = call.body
      checkPort(port)
      const { key, project } = call.caller
      const id = sandboxIdOf(call.params.id)
      // One that is paused has ports again when it is resumed.
      const isThere = node.sandboxes.entries.get(id)?.record.project === project
      if (!isThere) (await lendFor(node, call))[Symbol.dispose]()
      const expiresAtMs = Math.floor((now() + expires) / 1_000) * 1_000
      const token = tokens.sign({ sandbox: id, port, key, expiresAtMs })
      return {
        url: tokenUrl(places, token, path),
        originUrl: originUrl(places, token, path),
        expiresAtMs,
      }
    },
  }
}
