/** What a figure is, from raw samples to the line that is printed. */
import { quantile } from './statistics.ts'

/** What the product promises: a bound of the value itself, or of its ratio to the reference. */
export type Target =
  | { readonly of: 'value' | 'ratio'; readonly atMost: number }
  | { readonly of: 'value' | 'ratio'; readonly atLeast: number }

/** What a bench measured, before anything is made of it. */
export interface Measured {
  /** `bench` or `bench.part`. */
  readonly name: string
  /** Of value and reference: `ms`, `/s`, `MB`, … */
  readonly unit: string
  readonly samples: readonly number[]
  /** The same measure of the reference, taken in the same process run, in turn with the samples. */
  readonly reference?: readonly number[]
  /** Which quantile of the samples the value is. Default 0.5. */
  readonly at?: number
  readonly target?: Target
  /** One line for a person: what it was measured with, or what it says besides. */
  readonly note?: string
}

export interface Figure {
  readonly name: string
  readonly unit: string
  /** Median of the samples, or the quantile that the name says. */
  readonly value: number
  /** The middle half of the samples. */
  readonly spread: { readonly p25: number; readonly p75: number }
  /** Median of the reference's samples. */
  readonly reference: number | null
  /** value / reference. */
  readonly ratio: number | null
  readonly target: Target | null
  /** null where nothing is promised. */
  readonly met: boolean | null
  readonly note: string | null
  /** One-minute load average when the bench began: above the number of processors it was not alone. */
  readonly load: number
  readonly samples?: { readonly value: readonly number[]; readonly reference: readonly number[] }
}

export function figureOf(measured: Measured, load: number, withSamples: boolean): Figure {
  const { name, unit, samples, reference = [], at = 0.5, target } = measured
  if (samples.length === 0) throw new Error(`${name} has no samples`)
  const value = quantile(samples, at)
  const referenceValue = reference.length > 0 ? quantile(reference, 0.5) : null
  const ratio = referenceValue === null ? null : value / referenceValue
  const judged = target?.of === 'ratio' ? ratio : value
  return {
    name,
    unit,
    value,
    spread: { p25: quantile(samples, 0.25), p75: quantile(samples, 0.75) },
    reference: referenceValue,
    ratio,
    target: target ?? null,
    met: target ? judged !== null && isMet(target, judged) : null,
    note: measured.note ?? null,
    load,
    ...(withSamples ? { samples: { value: samples, reference } } : {}),
  }
}

function isMet(target: Target, judged: number): boolean {
  return 'atMost' in target ? judged <= target.atMost : judged >= target.atLeast
}
