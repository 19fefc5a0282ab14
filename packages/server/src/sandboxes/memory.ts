import { type ForkAnswer, newId, type SandboxView, SandlotError } from '@sandlot/protocol'
import { toSandlotError } from '../failure.ts'
import type { Call, Handlers } from '../http/call.ts'
import { idFromKey } from '../id-from-key.ts'
import { SERVER_LIMITS } from '../limits.ts'
import type { Entry } from '../node/entry.ts'
import type { Copies, Forked } from '../node/fork.ts'
import { goneError } from '../node/lend.ts'
import type { Node } from '../node/node.ts'
import { unlessAborted } from '../node/waits.ts'
import { sandboxIdOf } from './use.ts'
import { liveView } from './view.ts'

type MemoryRoutes = 'pauseSandbox' | 'resumeSandbox' | 'forkSandbox'

export interface MemoryServices {
  readonly node: Node
  readonly clock: { now(): number }
  /** Copies of the files alone. */
  readonly forkFiles: (
    call: Call<'forkSandbox'>,
    original: Entry,
    copies: Copies,
  ) => Promise<readonly Forked[]>
}

/** The memory of a client's sandboxes, to disk and back. What was begun goes on when the client leaves. */
export function memoryHandlers(services: MemoryServices): Pick<Handlers, MemoryRoutes> {
  const { node, clock } = services
  return {
    pauseSandbox: async (call): Promise<SandboxView> => {
      const entry = await entryFor(node, call, clock.now())
      await unlessAborted(node.sandboxes.memory.pause(entry), call.signal)
      return liveView(entry)
    },
    forkSandbox: (call) => fork(services, call, clock.now()),
    resumeSandbox: async (call): Promise<SandboxView> => {
      const entry = await entryFor(node, call, clock.now())
      const { signal } = new AbortController()
      const wait = { waitMs: SERVER_LIMITS.resumeWaitMs, signal }
      await unlessAborted(node.sandboxes.memory.resume(entry, wait), call.signal)
      return liveView(entry)
    },
  }
}

/** Copies of a client that left without a key can be found by their parent, and end by themselves. */
async function fork(
  { node, forkFiles }: MemoryServices,
  call: Call<'forkSandbox'>,
  nowMs: number,
): Promise<ForkAnswer> {
  const { body, caller, idempotencyKey: key } = call
  const ids = Array.from({ length: body.count }, (_, n) =>
    key === undefined ? newId('sandbox') : idFromKey('sandbox', caller.project, `${key}/${n}`),
  )
  const { tags, onRestore } = body
  const original = await entryFor(node, call, nowMs)
  const forked =
    body.kind === 'filesystem'
      ? await forkFiles(call, original, { ids, tags })
      : await node.fork(original, { ids, tags, onRestore })
  const items = forked.map((each) =>
    'entry' in each ? { sandbox: liveView(each.entry) } : toSandlotError(each.error).toEnvelope(),
  )
  return { items }
}

/** @throws SandlotError `sandbox_unknown`, `sandbox_gone` */
async function entryFor(node: Node, call: Call<MemoryRoutes>, nowMs: number): Promise<Entry> {
  const id = sandboxIdOf(call.params.id)
  const entry = node.sandboxes.entries.get(id)
  const { project } = call.caller
  if (entry?.record.project === project) {
    await unlessAborted(entry.ready, call.signal)
    return entry
  }
  const ending = node.endingsKnown.find(id, nowMs)
  if (ending?.record.project === project) throw goneError(ending.ended, id)
  throw new SandlotError('sandbox_unknown', `no sandbox ${id} is known here`)
}
