import { expect, test } from 'vitest'
import { addressOf, type ScriptedRun, scriptedRun, textOf } from '../simulation/scripted-run.ts'
import { noReading, nothingRead } from './reading.ts'
import { reportOf } from './report.ts'

const worker = { type: 'worker_attached', worker: 'w', slots: 8, held: [] } as const

/** Each episode takes so long of the only slot. */
function runEpisodes(script: ScriptedRun, count: number, eachMs: number): void {
  script.put(count)
  for (let n = 0; n < count; n++) {
    const offer = script.toAgent()
    script.nowMs += eachMs
    script.tell({ type: 'reported', ...addressOf(offer), report: { kind: 'returned', reward: 1 } })
    const { episode, attempt } = offer
    script.tell({ type: 'torn_down', episode, attempt, sandbox: `sb_${episode}_${attempt}` })
  }
}

function saturation(script: ScriptedRun) {
  return reportOf(script.run, script.nowMs).saturation
}

test('the time is that of the factor that held the run meanwhile, and a replay tells the same', () => {
  const script = scriptedRun({ concurrency: 1 })
  script.nowMs += 500
  script.put(1)
  script.nowMs += 2_000
  script.tell(worker)
  script.put(2)
  script.nowMs += 1_000
  expect(saturation(script)).toMatchObject({
    evidence: 'all 1 slots hold an episode, and 2 wait to begin',
    limitedMs: { none: 500, worker: 2_000, concurrency: 1_000 },
    slotsBusy: 1_000 / 3_500,
    trainer: null,
    producer: { waitedMs: 0, waitShare: 0 },
  })
  script.tell({ type: 'tick' })
  script.tell({ type: 'pause', cause: 'by hand' })
  script.nowMs += 300
  script.tell({ type: 'resume' })
  expect(textOf(script.replayed())).toBe(textOf(script.run))
  expect(saturation(script).limitedMs).toEqual({ none: 800, worker: 2_000, concurrency: 1_000 })
})

test('no time passes while there is no daemon', () => {
  const script = scriptedRun({ concurrency: 1 })
  script.put(1)
  script.tell(worker)
  script.nowMs += 60_000
  script.tell({ type: 'recovered', recordedThrough: 0 })
  expect(saturation(script)).toMatchObject({ limitedMs: {}, slotsBusy: 0 })
})

test('as many slots balance a run as its trainer would take results while one is made', () => {
  const script = scriptedRun({ concurrency: 1 })
  script.tell(worker)
  runEpisodes(script, 40, 10_000)
  expect(saturation(script).balance).toEqual({
    concurrency: null,
    why: 'nobody has read results yet',
  })
  // 2 s a result, each of which has cost 10 s of a slot: it waited for four fifths of the time.
  const reading = { waitedMs: 320_000, busyMs: 80_000, taken: 40, pages: 40 }
  script.tell({ type: 'reading', read: 'rows', ...reading })
  const { trainer, balance } = saturation(script)
  expect(trainer).toEqual({ waitedMs: 320_000, busyMs: 80_000, waitShare: 0.8, taken: 40 })
  expect(balance.concurrency).toBe(5)
  expect(balance.why).toContain('one row takes 10s of slots to make')
  expect(textOf(script.replayed())).toBe(textOf(script.run))
})

test('a trainer that is slower than the pool needs less of it', () => {
  const script = scriptedRun({ concurrency: 4 })
  script.tell(worker)
  script.put(4)
  runEpisodes(script, 40, 1_000)
  const reading = { waitedMs: 0, busyMs: 400_000, taken: 40, pages: 20 }
  script.tell({ type: 'reading', read: 'rows', ...reading })
  expect(saturation(script).balance.concurrency).toBe(1)
})

test('what was done and not told yet counts as well', () => {
  const script = scriptedRun({ concurrency: 1 })
  const rows = { ...nothingRead(), waitedMs: 3_000 }
  const { trainer } = reportOf(script.run, script.nowMs, { ...noReading(), rows }).saturation
  expect(trainer).toMatchObject({ waitedMs: 3_000, waitShare: 1 })
})

test.each([
  [5, { waitedMs: 1, busyMs: 9, taken: 5, pages: 5 }, '5 episodes have ended, and it takes 20'],
  [30, { waitedMs: 1, busyMs: 9, taken: 5, pages: 2 }, 'the trainer came 2 times'],
  [30, { waitedMs: 999, busyMs: 1, taken: 5, pages: 9 }, 'it has no pace of its own'],
])('no balance is told of too little: %d episodes, read as %o', (count, reading, why) => {
  const script = scriptedRun({ concurrency: 1 })
  script.tell(worker)
  runEpisodes(script, count, 1_000)
  script.tell({ type: 'reading', read: 'rows', ...reading })
  const { balance } = saturation(script)
  expect(balance.concurrency).toBeNull()
  expect(balance.why).toContain(why)
})
