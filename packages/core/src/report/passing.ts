import type { LimitingFactor } from '@sandlot/protocol'
import type { Run } from '../run/run.ts'
import { limitingFactor } from './limiting.ts'

/** How a run's time passed, up to its last event. The time in which there was no daemon is not in it. */
export interface PassedTime {
  /** How long each factor held the run. */
  readonly limitedMs: Partial<Record<LimitingFactor, number>>
  /** Of each slot the time in which it held an episode, together. */
  slotMs: number
}

/** Nothing changes between two events: what held the run up to this one is what holds it still. */
export function passTime(run: Run, atMs: number): void {
  const passedMs = atMs - run.nowMs
  if (passedMs > 0) addTime(run, run.totals.passed, passedMs)
}

/** The same as if there were an event now. */
export function passedBy(run: Run, nowMs: number): PassedTime {
  const { limitedMs, slotMs } = run.totals.passed
  const passed = { limitedMs: { ...limitedMs }, slotMs }
  if (run.status !== 'finished') addTime(run, passed, Math.max(0, nowMs - run.nowMs))
  return passed
}

function addTime(run: Run, passed: PassedTime, passedMs: number): void {
  const factor = limitingFactor(run)
  passed.limitedMs[factor] = (passed.limitedMs[factor] ?? 0) + passedMs
  passed.slotMs += run.index.slots.size * passedMs
}
