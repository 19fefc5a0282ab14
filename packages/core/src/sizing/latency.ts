import { formatDuration, parseDurationMs } from '@sandlot/protocol'
import type { Random } from '../simulation/random.ts'

/** How long something takes: a distribution to draw from. */
export type Latency =
  | { readonly kind: 'fixed'; readonly ms: number }
  | { readonly kind: 'uniform'; readonly leastMs: number; readonly mostMs: number }
  /** The longest of many are far longer than the median: `sigma` says how far. */
  | { readonly kind: 'lognormal'; readonly medianMs: number; readonly sigma: number }
  | { readonly kind: 'exponential'; readonly meanMs: number }

/**
 * `30s`, `uniform:1s,5s`, `lognormal:30s,1.2` (median, sigma), `exponential:3s` (mean).
 * @throws RangeError saying what is understood
 */
export function parseLatency(text: string): Latency {
  try {
    const read = readLatency(text)
    if (read) return read
  } catch {
    // A part of it is no duration.
  }
  throw new RangeError(
    `${JSON.stringify(text)} is not how long something takes: give '30s', 'uniform:1s,5s', 'exponential:3s' (its mean) or 'lognormal:30s,1.2' (its median, and sigma from 0 to ${SIGMA_MAX})`,
  )
}

function readLatency(text: string): Latency | undefined {
  const [, kind = 'fixed', given = ''] = /^\s*(?:([a-z]+):)?(.*)$/s.exec(text) ?? []
  const [first = '', second = '', ...more] = given.split(',').map((part) => part.trim())
  const takesTwo = kind === 'uniform' || kind === 'lognormal'
  if (more.length > 0 || takesTwo !== (second !== '')) return undefined
  const firstMs = parseDurationMs(first)
  switch (kind) {
    case 'fixed':
      return { kind, ms: firstMs }
    case 'exponential':
      return { kind, meanMs: firstMs }
    case 'uniform': {
      const mostMs = parseDurationMs(second)
      return firstMs <= mostMs ? { kind, leastMs: firstMs, mostMs } : undefined
    }
    case 'lognormal': {
      const sigma = Number(second)
      return sigma >= 0 && sigma <= SIGMA_MAX ? { kind, medianMs: firstMs, sigma } : undefined
    }
    default:
      return undefined
  }
}

export function drawMs(latency: Latency, random: Random): number {
  switch (latency.kind) {
    case 'fixed':
      return latency.ms
    case 'uniform':
      return random.between(latency.leastMs, latency.mostMs)
    case 'lognormal':
      return random.spread(latency.medianMs, latency.sigma)
    case 'exponential':
      return -latency.meanMs * Math.log(1 - random.next())
  }
}

/** Half of what is drawn is shorter. */
export function medianMsOf(latency: Latency): number {
  switch (latency.kind) {
    case 'fixed':
      return latency.ms
    case 'uniform':
      return (latency.leastMs + latency.mostMs) / 2
    case 'lognormal':
      return latency.medianMs
    case 'exponential':
      return latency.meanMs * Math.LN2
  }
}

export function formatLatency(latency: Latency): string {
  switch (latency.kind) {
    case 'fixed':
      return formatDuration(latency.ms)
    case 'uniform':
      return `uniform:${formatDuration(latency.leastMs)},${formatDuration(latency.mostMs)}`
    case 'lognormal':
      return `lognormal:${formatDuration(latency.medianMs)},${latency.sigma}`
    case 'exponential':
      return `exponential:${formatDuration(latency.meanMs)}`
  }
}

/** Beyond it the longest of a thousand takes ten million times the median. */
const SIGMA_MAX = 5
