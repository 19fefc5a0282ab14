import { formatDuration, type Saturation } from '@sandlot/protocol'
import { CORE_LIMITS } from '../limits.ts'
import type { Run } from '../run/run.ts'
import { evidenceOf, limitingFactor } from './limiting.ts'
import { type PassedTime, passedBy } from './passing.ts'
import { addReading, noReading, READ, type Reading, type ReadingTotals } from './reading.ts'

/** Who waits for whom, and how many slots it would take for nobody to. */
export function saturationOf(run: Run, nowMs: number, reading: Reading = noReading()): Saturation {
  const passed = passedBy(run, nowMs)
  const trainer = trainerOf(run, reading)
  const elapsedMs = sum(Object.values(passed.limitedMs))
  const heldMs = passed.limitedMs.consumer ?? 0
  return {
    evidence: evidenceOf(run, limitingFactor(run)),
    limitedMs: passed.limitedMs,
    slotsBusy: Math.min(1, shareOf(passed.slotMs, elapsedMs * run.policy.concurrency)),
    trainer: trainer && {
      waitedMs: trainer.waitedMs,
      busyMs: trainer.busyMs,
      waitShare: shareOf(trainer.waitedMs, trainer.waitedMs + trainer.busyMs),
      taken: trainer.taken,
    },
    producer: { waitedMs: heldMs, waitShare: shareOf(heldMs, elapsedMs) },
    balance: balanceOf(run, passed, trainer),
  }
}

interface Trainer extends ReadingTotals {
  readonly reads: 'row' | 'group'
}

/** Of a run with groups whoever reads these, where somebody does. */
function trainerOf(run: Run, reading: Reading): Trainer | null {
  const all = noReading()
  for (const read of READ) {
    addReading(all[read], run.totals.reading[read])
    addReading(all[read], reading[read])
  }
  const reads = all.groups.pages > 0 ? 'groups' : 'rows'
  const found = all[reads]
  if (found.pages === 0 && found.waitedMs === 0) return null
  return { ...found, reads: reads === 'groups' ? 'group' : 'row' }
}

/**
 * By Little's law: so many slots are in use on average as results come in per second, times the slot's time that each has cost.
 * The trainer would take as many per second as it took while it did not wait.
 */
function balanceOf(run: Run, passed: PassedTime, trainer: Trainer | null): Saturation['balance'] {
  const untold = (why: string) => ({ concurrency: null, why })
  if (trainer === null) return untold('nobody has read results yet')
  const { ended } = run.totals
  const least = Math.max(CORE_LIMITS.quantileSamplesMin, BALANCE_ROUNDS * run.policy.concurrency)
  const enough = run.status === 'finished' ? CORE_LIMITS.quantileSamplesMin : least
  if (ended < enough) return untold(`${ended} episodes have ended, and it takes ${enough} to tell`)
  if (trainer.pages < BALANCE_PAGES) {
    return untold(`the trainer came ${trainer.pages} times, and it takes ${BALANCE_PAGES} to tell`)
  }
  const made = trainer.reads === 'group' ? completeGroups(run) : ended
  if (made === 0) return untold('no group is complete yet')
  const costMs = passed.slotMs / made
  if (trainer.busyMs < BUSY_SHARE_MIN * (trainer.waitedMs + trainer.busyMs)) {
    return untold('the trainer takes results as they come: it has no pace of its own')
  }
  const paceMs = trainer.busyMs / trainer.taken
  const needed = Math.max(1, Math.ceil(costMs / paceMs))
  const why = `one ${trainer.reads} takes ${formatDuration(costMs)} of slots to make, and the trainer takes one each ${formatDuration(paceMs)} while it does not wait`
  return { concurrency: needed, why }
}

/** Every slot has seen so many episodes: the ones that are still under way don't count for much any more. */
const BALANCE_ROUNDS = 2
const BALANCE_PAGES = 3
/** What a trainer that does nothing but read spends between two reads. */
const BUSY_SHARE_MIN = 0.02

function completeGroups({ totals }: Run): number {
  const { size = 0, cut = 0, rest = 0 } = totals.groups.reasons
  return size + cut + rest
}

function shareOf(part: number, whole: number): number {
  return whole <= 0 ? 0 : Math.min(1, part / whole)
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
