import { SandlotError } from '@sandlot/protocol'
import type { CheckpointFacts, Sandbox, Usage } from '@sandlot/runtime'
import { toSandlotError } from '../failure.ts'
import { SERVER_LIMITS } from '../limits.ts'
import { settlePause } from '../usage/settle-pause.ts'
import type { Entry } from './entry.ts'
import { pausedError } from './lend.ts'
import { memoryTransferMs } from './memory-time.ts'
import { isAttempt } from './owners.ts'
import { specFor } from './put-over.ts'
import type { NodeParts } from './sandboxes.ts'
import { restoreSandbox } from './start.ts'

/** What the register does once the memory of a sandbox has moved. */
export interface MemoryRegister {
  /** It runs again, as another sandbox of the driver. */
  resumed(entry: Entry, sandbox: Sandbox): void
  /** It goes on as it was, or is found dead. */
  unchanged(entry: Entry): void
}

/**
 * Memory of running sandboxes, to disk and back. Of each sandbox one such operation runs at a time; whoever wants to use it
 * meanwhile waits.
 */
export class SandboxMemory {
  readonly #parts: NodeParts
  readonly #register: MemoryRegister

  constructor(parts: NodeParts, register: MemoryRegister) {
    this.#parts = parts
    this.#register = register
  }

  /** Memory to disk, nothing resident, its room free. Idempotent. What fails leaves it running. */
  pause(entry: Entry): Promise<void> {
    return entry.alone(async () => {
      if (entry.state === 'paused') return
      const { driver, clock, checkpoints, ownership } = this.#parts
      const sandbox = checkpointable(entry)
      entry.move('pausing')
      const running = entry.counted
      const pausedAtMs = clock.now()
      let used: Usage | undefined
      try {
        await checkpoints.remove(entry.id)
        used = await driver.usage(sandbox).catch(() => undefined)
        // Before its end: found dead with a whole checkpoint, it was paused.
        entry.record = { ...running, pausedAtMs }
        await ownership.put(entry.record)
        const options = { leaveRunning: false, signal: deadline(entry) }
        await driver.checkpoint(sandbox, checkpoints.path(entry.id), options)
      } catch (error) {
        entry.record = running
        await ownership.put(running).catch(() => {})
        entry.move('running')
        this.#register.unchanged(entry)
        throw toSandlotError(error)
      }
      await entry.closeNetwork()
      entry.sandbox = undefined
      entry.move('paused')
      entry.record = await settlePause(this.#parts, entry.record, used?.cpuMs)
      entry.room?.[Symbol.dispose]()
      entry.room = undefined
    })
  }

  /** Takes room again, and goes on. Idempotent. What fails leaves it paused. */
  resume(
    entry: Entry,
    wait: { readonly waitMs: number; readonly signal: AbortSignal },
  ): Promise<void> {
    return entry.alone(async () => {
      if (entry.state === 'running') return
      if (entry.state !== 'paused') throw notRunning(entry)
      const { room, checkpoints, ownership, clock, log } = this.#parts
      using _ = entry.use(() => clock.now())
      entry.move('resuming')
      try {
        entry.room = await room.take(entry.record.resources, wait)
        const settled = await settlePause(this.#parts, entry.record)
        const { pausedAtMs = clock.now(), ...record } = settled
        const stoodMs = Math.max(0, clock.now() - pausedAtMs)
        const openedAtMs = (entry.openedAtMs ?? record.createdAtMs) + stoodMs
        const sandbox = await this.#restore(entry, openedAtMs)
        const pausedMs = (record.pausedMs ?? 0) + stoodMs
        entry.record = { ...record, pausedMs, meteredFromMs: clock.now() }
        entry.openedAtMs = openedAtMs
        await ownership.put(entry.record)
        entry.origin = 'restored'
        this.#register.resumed(entry, sandbox)
      } catch (error) {
        entry.room?.[Symbol.dispose]()
        entry.room = undefined
        entry.move('paused')
        throw staysPaused(error)
      }
      await checkpoints.remove(entry.id).catch((error) => {
        log.error(
          { err: error, sandbox: entry.id },
          'the memory of a resumed sandbox stays on disk',
        )
      })
    })
  }

  /** Saves it under a name, and lets it run on. */
  save(entry: Entry, name: string): Promise<CheckpointFacts> {
    return entry.alone(async () => {
      const { driver, checkpoints } = this.#parts
      const sandbox = checkpointable(entry)
      const options = { leaveRunning: true, signal: deadline(entry) }
      try {
        return await driver.checkpoint(sandbox, checkpoints.path(name), options)
      } catch (error) {
        throw toSandlotError(error)
      }
    })
  }

  /** Removes what was saved under a name; what can't be removed the next daemon does. */
  async drop(name: string): Promise<void> {
    await this.#parts.checkpoints.remove(name).catch((error) => {
      this.#parts.log.error({ err: error, name }, 'saved memory that nobody wants stays on disk')
    })
  }

  async #restore(entry: Entry, openedAtMs: number): Promise<Sandbox> {
    const { starter, checkpoints, clock } = this.#parts
    const spec = specFor(entry)
    const { lifetimeMs } = entry.record
    const leftMs = lifetimeMs === null ? undefined : openedAtMs + lifetimeMs - clock.now()
    return await restoreSandbox(
      starter,
      { ...spec, ...(leftMs === undefined ? {} : { lifetimeMs: Math.max(1, Math.round(leftMs)) }) },
      checkpoints.path(entry.id),
      { signal: deadline(entry) },
    )
  }
}

/**
 * The running sandbox whose memory can be saved.
 * @throws SandlotError `unsupported`, `sandbox_paused`, `invalid_request`
 */
export function checkpointable(entry: Entry): Sandbox {
  if (entry.state === 'paused') throw pausedError(entry.id)
  if (isAttempt(entry.record.owner)) {
    throw new SandlotError('invalid_request', `the sandbox ${entry.id} belongs to an attempt`, {
      hint: 'Its memory is saved with it or not at all: an attempt has a deadline.',
    })
  }
  if (!entry.record.checkpointable) {
    throw new SandlotError('unsupported', `the memory of the sandbox ${entry.id} can't be saved`, {
      hint: 'Create it with `checkpointable: true` (`--checkpointable`). Of any other sandbox the files can be saved and forked: kind `filesystem` (`fork --kind filesystem`, `snapshot` without `--memory`).',
    })
  }
  if (entry.state !== 'running' || !entry.sandbox) throw notRunning(entry)
  return entry.sandbox
}

function notRunning(entry: Entry): SandlotError {
  return new SandlotError('sandbox_gone', `the sandbox ${entry.id} is ${entry.state}`)
}

function deadline({ record }: Entry): AbortSignal {
  const { memory, disk } = record.resources
  const transferMs = memoryTransferMs({ memoryBytes: memory.limit, diskBytes: disk })
  return AbortSignal.timeout(SERVER_LIMITS.memoryMs + transferMs)
}

/** The runtime's hint is for snapshots, which others can be taken in place of; all that there is of a paused sandbox is what was saved. */
function staysPaused(thrown: unknown): SandlotError {
  const error = toSandlotError(thrown)
  if (error.code !== 'snapshot_incompatible') return error
  return new SandlotError(error.code, error.message, { hint: ALL_THERE_IS, cause: thrown })
}

const ALL_THERE_IS =
  'Nothing else was kept of a paused sandbox. Where the message names what differs, resume it with the runtime and on the machine that it was paused with; else stop it, and create another.'
