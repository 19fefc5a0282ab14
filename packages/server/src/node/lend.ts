import { type SandboxEnding, SandlotError } from '@sandlot/protocol'
import { DriverError, type Guest, GuestLost } from '@sandlot/runtime'
import { toSandlotError } from '../failure.ts'
import { SERVER_LIMITS } from '../limits.ts'
import type { Entry } from './entry.ts'
import type { SandboxEnded } from './port.ts'
import { unlessAborted } from './waits.ts'

/** The use of a sandbox's guest, until disposed: meanwhile it is kept warm. */
export interface Lent extends Disposable {
  readonly id: string
  readonly guest: Guest
  /** For how long its processor limit has held it up. */
  readonly heldUpMs: () => Promise<number>
  /** What a command sees where it doesn't say otherwise. */
  readonly env: Readonly<Record<string, string>>
  readonly workdir: string
  readonly user: string
  /** The failure of a call, with the sandbox's ending where that is what it means. */
  explain(error: unknown): Promise<SandlotError>
}

/** @throws SandlotError `sandbox_gone`, `sandbox_lost` or `cancelled` where it did not come up */
export async function lend(
  entry: Entry,
  options: { readonly signal?: AbortSignal | undefined; readonly now: () => number },
): Promise<Lent> {
  const using = entry.use(options.now)
  try {
    await unlessAborted(entry.ready, options.signal)
    if (entry.busy) await unlessAborted(entry.busy, options.signal)
  } catch (error) {
    using[Symbol.dispose]()
    throw error
  }
  const { sandbox } = entry
  if (entry.state === 'paused') {
    using[Symbol.dispose]()
    throw pausedError(entry.id)
  }
  if (!sandbox || entry.state !== 'running') {
    using[Symbol.dispose]()
    throw goneError(await fateOf(entry), entry.id)
  }
  return {
    id: entry.id,
    guest: sandbox.guest,
    heldUpMs: () => sandbox.heldUpMs(),
    ...seenBy(entry),
    explain: (error) => explain(entry, error),
    [Symbol.dispose]: () => using[Symbol.dispose](),
  }
}

/** What a command of a sandbox sees where it doesn't say otherwise. */
export function seenBy({ network, record }: Entry): Pick<Lent, 'env' | 'workdir' | 'user'> {
  const { env, workdir, user } = record
  return { env: { ...network?.env, ...env }, workdir, user }
}

/** A lost guest is explained by its sandbox's ending, which the node learns a moment later. */
async function explain(entry: Entry, error: unknown): Promise<SandlotError> {
  const lost =
    error instanceof GuestLost || (error instanceof DriverError && error.code === 'sandbox_gone')
  if (!lost) return toSandlotError(error)
  if (entry.shownState === 'paused' || entry.state === 'pausing') return pausedError(entry.id)
  return goneError(await fateOf(entry), entry.id)
}

/** Of one whose memory is on disk; what ran in it goes on when it is resumed. */
export function pausedError(sandbox: string): SandlotError {
  return new SandlotError('sandbox_paused', `the sandbox ${sandbox} is paused`)
}

const OURS: ReadonlySet<SandboxEnding> = new Set(['lost', 'oom_host', 'shutdown'])

/** The error of a sandbox that ended: by the wish of somebody or its own doing, or by ours. */
export function goneError(ended: SandboxEnded | undefined, sandbox: string): SandlotError {
  if (!ended) return new SandlotError('sandbox_lost', `the sandbox ${sandbox} does not answer`)
  return new SandlotError(
    OURS.has(ended.kind) ? 'sandbox_lost' : 'sandbox_gone',
    `the sandbox ${sandbox} ended (${ended.kind}): ${ended.detail}`,
    { details: { ending: ended } },
  )
}

async function fateOf(entry: Entry): Promise<SandboxEnded | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>()
  const timer = setTimeout(() => resolve(undefined), SERVER_LIMITS.fateMs)
  try {
    return await Promise.race([entry.over, promise])
  } finally {
    clearTimeout(timer)
  }
}
