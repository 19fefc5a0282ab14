import { z } from 'zod'
import { LIMITS } from './limits.ts'

const DURATION_UNITS_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
const SIZE_UNITS_BYTES = {
  B: 1,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
} as const

/**
 * `'30s'`, `'1.5m'`, `'250ms'`, `'2h'`, `'7d'` → whole milliseconds.
 * @throws RangeError naming the accepted units.
 */
export function parseDurationMs(text: string): number {
  return Math.round(
    parseQuantity(text, DURATION_UNITS_MS, "a duration such as '30s', '15m' or '2h'"),
  )
}

/**
 * `'512MiB'`, `'2GB'`, `'100KiB'` → whole bytes.
 * @throws RangeError naming the accepted units.
 */
export function parseSizeBytes(text: string): number {
  return Math.round(parseQuantity(text, SIZE_UNITS_BYTES, "a size such as '512MiB' or '2GB'"))
}

/** A duration on the wire: text with a unit, or a number of milliseconds. Parses to milliseconds. */
export const durationMs = z.union([
  z.number().finite().nonnegative().max(Number.MAX_SAFE_INTEGER).transform(Math.round),
  z.string().transform((text, context) => parsed(() => parseDurationMs(text), context)),
])

/** The same in a query, where a number of milliseconds is text. */
export const waitInQuery = z.union([z.string().regex(/^\d+$/).transform(Number), durationMs])

/** A duration that makes sense only from some length on; `without` is what holds where none is given. */
export function durationOf(leastMs: number, without: string) {
  const least = formatDuration(leastMs)
  return durationMs.refine((ms) => ms >= leastMs, {
    error: `shorter than ${least}, the least that is possible`,
    params: { hint: `Give at least '${least}', or leave it out for ${without}.` },
  })
}

/** A deadline: from some length on, and no longer than a timer waits. `without` is what holds where none is given. */
export function deadlineOf(leastMs: number, without: string) {
  const most = formatDuration(LIMITS.deadlineMsMax)
  return durationOf(leastMs, without).refine((ms) => ms <= LIMITS.deadlineMsMax, {
    error: `longer than ${most}, the most that is possible`,
    params: { hint: `Give at most '${most}', or leave it out for ${without}.` },
  })
}

/** `'p90'`: the time within which so many of a hundred are done, as the platform has seen it so far. */
export type Quantile = `p${number}`

/** From the half on: a bound below it would be one for the ordinary. */
const QUANTILE = /^p([5-9]\d)$/

/** `'p90'` → 0.9; undefined for what is no quantile. */
export function parseQuantile(text: string): number | undefined {
  const percent = QUANTILE.exec(text)?.[1]
  return percent === undefined ? undefined : Number(percent) / 100
}

/** A duration that makes sense only from some length on, or a quantile of what is seen. Parses to milliseconds or the quantile. */
export function durationOrQuantile(leastMs: number) {
  const least = formatDuration(leastMs)
  return z
    .union([z.number().finite().nonnegative().max(Number.MAX_SAFE_INTEGER), z.string()])
    .transform((given, context): number | Quantile => {
      if (typeof given === 'string' && parseQuantile(given) !== undefined) return given as Quantile
      const ms = typeof given === 'number' ? Math.round(given) : parsed(() => late(given), context)
      if (ms === z.NEVER || ms >= leastMs) return ms
      const message = `shorter than ${least}, the least that is possible`
      context.addIssue({ code: 'custom', message })
      return z.NEVER
    })
}

/** A size on the wire: text with a unit, or a number of bytes. Parses to bytes. */
export const sizeBytes = z.union([
  z.number().int().nonnegative().max(Number.MAX_SAFE_INTEGER),
  z.string().transform((text, context) => parsed(() => parseSizeBytes(text), context)),
])

/** `1536` → `'1.5 KiB'`, for people. */
export function formatSize(bytes: number): string {
  for (const unit of ['TiB', 'GiB', 'MiB', 'KiB'] as const) {
    const scale = SIZE_UNITS_BYTES[unit]
    if (bytes >= scale) return `${trimmed(bytes / scale)} ${unit}`
  }
  return `${bytes} B`
}

/** `90_000` → `'1.5m'`, for people. */
export function formatDuration(ms: number): string {
  for (const unit of ['d', 'h', 'm', 's'] as const) {
    const scale = DURATION_UNITS_MS[unit]
    if (ms >= scale) return `${trimmed(ms / scale)}${unit}`
  }
  return `${trimmed(ms)}ms`
}

function late(text: string): number {
  return Math.round(
    parseQuantity(
      text,
      DURATION_UNITS_MS,
      "a duration such as '10m', or a quantile from 'p50' to 'p99'",
    ),
  )
}

function parseQuantity(text: string, units: Record<string, number>, wanted: string): number {
  const match = /^\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]+)\s*$/.exec(text)
  const scale = match?.[2] === undefined ? undefined : units[match[2]]
  const value = scale === undefined ? Number.NaN : Number(match?.[1]) * scale
  if (!Number.isFinite(value) || value > Number.MAX_SAFE_INTEGER) {
    throw new RangeError(
      `${JSON.stringify(text)} is not ${wanted} (units: ${Object.keys(units).join(', ')})`,
    )
  }
  return value
}

function parsed(parse: () => number, context: z.RefinementCtx): number {
  try {
    return parse()
  } catch (error) {
    context.addIssue({ code: 'custom', message: (error as Error).message })
    return z.NEVER
  }
}

function trimmed(value: number): string {
  return String(Number(value.toFixed(1)))
}
