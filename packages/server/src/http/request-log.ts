import type { RouteName, SandlotError } from '@sandlot/protocol'
import type { Logger } from 'pino'
import { redacted } from '../redact.ts'
import type { Caller } from './keys.ts'

/** A request that was answered. */
export interface Answered {
  /** `port`: it was for a server in a sandbox. */
  readonly route: RouteName | 'port' | 'unknown'
  readonly method: string
  /** Path with query. */
  readonly target: string
  readonly status: number
  readonly elapsedMs: number
  readonly error: SandlotError | undefined
  /** Undefined where nobody was let in. */
  readonly caller: Caller | undefined
  /** What the path names. */
  readonly targets: Readonly<Record<string, string>>
  readonly address: string | null
}

/** Asked all the time by machines: not worth a line. */
const QUIET: ReadonlySet<string> = new Set(['health', 'metrics'])
const TARGET_LENGTH = 200

/** One line a request: failures of ours as errors, refusals as they are, the rest at `debug`. */
export function logRequest(log: Logger, answered: Answered): void {
  const { route, method, target, status, elapsedMs, error } = answered
  const level = status >= 500 ? 'warn' : 'debug'
  if (QUIET.has(route) || !log.isLevelEnabled(level)) return
  log[level](
    {
      status,
      ms: Math.round(elapsedMs * 10) / 10,
      ...(error ? { code: error.code, why: redacted(error.message) } : {}),
    },
    `${method} ${redacted(target).slice(0, TARGET_LENGTH)}`,
  )
}
