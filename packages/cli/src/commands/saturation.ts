/** Who waits for whom in a run, for a person. */
import { formatDuration } from '@sandlot/protocol'
import type { RunReport } from 'sandlot'

type Told = Pick<RunReport, 'limiting' | 'saturation' | 'run'>

/** The lines of `sandlot runs show`. */
export function describeSaturation({ limiting, saturation, run }: Told): string[][] {
  if (!saturation) return [['limited by', limiting === 'none' ? '-' : limiting]]
  const { evidence, slotsBusy, trainer, producer, balance } = saturation
  const over = run.state === 'finished'
  return [
    ...(over ? [] : [['limited by', `${limiting === 'none' ? '-' : limiting}: ${evidence}`]]),
    ['limited over all', describeLimits(saturation) || '-'],
    ['slots', `${percent(slotsBusy)} of ${run.concurrency} held an episode`],
    ['trainer waited', trainer ? waited(trainer) : 'nobody has read results yet'],
    ['held by trainer', producer.waitedMs === 0 ? '-' : waited(producer)],
    ['balance', describeBalance(balance, run.concurrency)],
  ]
}

/** What the live line says of it: `limited by concurrency, trainer waits 41 %`. */
export function saturationNow({ limiting, saturation }: Told): string {
  const trainer = saturation?.trainer
  const parts = [
    ...(limiting === 'none' ? [] : [`limited by ${limiting}`]),
    ...(trainer ? [`trainer waited ${percent(trainer.waitShare)}`] : []),
    ...(saturation?.balance.concurrency == null
      ? []
      : [`balanced with ${saturation.balance.concurrency} slots`]),
  ]
  return parts.join(', ')
}

/** `concurrency 81 %, tail 19 %`: the longest first. */
function describeLimits({ limitedMs }: NonNullable<RunReport['saturation']>): string {
  const entries = Object.entries(limitedMs).sort(([, a], [, b]) => b - a)
  const total = entries.reduce((sum, [, ms]) => sum + ms, 0)
  return entries
    .filter(([, ms]) => ms > 0)
    .map(([factor, ms]) => `${factor === 'none' ? 'nothing' : factor} ${percent(ms / total)}`)
    .join(', ')
}

function waited({ waitedMs, waitShare }: { waitedMs: number; waitShare: number }): string {
  return `${formatDuration(waitedMs)}, ${percent(waitShare)} of its time`
}

function describeBalance(
  { concurrency, why }: NonNullable<RunReport['saturation']>['balance'],
  now: number,
): string {
  if (concurrency === null) return `- (${why})`
  return `${concurrency} slots, and there are ${now}: ${why}`
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`
}
