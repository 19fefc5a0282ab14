/** The table and the JSON object that `sandlot bench` prints. */
import type { Figure, Target } from './figure.ts'
import type { Machine } from './machine.ts'

export interface Report {
  readonly machine: Machine
  readonly figures: readonly Figure[]
  /** Benches that ended without figures, and why. */
  readonly failures: readonly { readonly name: string; readonly why: string }[]
}

const HEADINGS = ['figure', 'value', 'middle half', 'reference', 'ratio', 'target', '', 'load']

export function formatReport({ machine, figures, failures }: Report): string {
  const rows = figures.map(row)
  const widths = HEADINGS.map((heading, column) =>
    Math.max(heading.length, ...rows.map((cells) => cells[column]?.length ?? 0)),
  )
  const line = (cells: readonly string[], note = '') =>
    [...cells.map((cell, column) => pad(cell, widths[column] ?? 0, column)), note]
      .join('  ')
      .trimEnd()
  return [
    describe(machine),
    '',
    line(HEADINGS),
    ...figures.map((figure, index) => line(rows[index] ?? [], figure.note ?? '')),
    ...failures.map(({ name, why }) => `${name}: FAILED, ${why}`),
    '',
    summary(figures, failures.length),
  ].join('\n')
}

function row(figure: Figure): readonly string[] {
  const { name, unit, value, spread, reference, ratio, target, met, load } = figure
  return [
    name,
    `${short(value)} ${unit}`,
    `${short(spread.p25)} – ${short(spread.p75)}`,
    reference === null ? '' : `${short(reference)} ${unit}`,
    ratio === null ? '' : `${ratio.toFixed(2)} ×`,
    target === null ? '' : describeTarget(target, unit),
    met === null ? '' : met ? 'met' : 'MISS',
    load.toFixed(1),
  ]
}

function describeTarget(target: Target, unit: string): string {
  const bound = 'atMost' in target ? `≤ ${target.atMost}` : `≥ ${target.atLeast}`
  return target.of === 'ratio' ? `${bound} ×` : `${bound} ${unit}`
}

function describe(machine: Machine): string {
  const { processors, processor, memoryBytes, kernel, cgroups, node, runsc, load } = machine
  const memory = `${(memoryBytes / 2 ** 30).toFixed(1)} GiB`
  const before = load.map((each) => each.toFixed(1)).join(' ')
  return `${processors} × ${processor}, ${memory}, Linux ${kernel}, cgroups ${cgroups}, Node.js ${node}, runsc ${runsc}, load ${before}`
}

function summary(figures: readonly Figure[], failed: number): string {
  const count = (met: boolean | null) => figures.filter((figure) => figure.met === met).length
  return `${count(true)} met, ${count(false)} missed, ${count(null)} without a target, ${failed} failed`
}

/** Three digits that count. */
function short(value: number): string {
  if (!Number.isFinite(value)) return String(value)
  const size = Math.abs(value)
  if (size >= 100) return Math.round(value).toLocaleString('en')
  if (size >= 10) return value.toFixed(1)
  return size >= 1 || size === 0 ? value.toFixed(2) : value.toFixed(3)
}

/** Names to the left, numbers to the right. */
function pad(cell: string, width: number, column: number): string {
  return column === 0 || column === 6 ? cell.padEnd(width) : cell.padStart(width)
}
