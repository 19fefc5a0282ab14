import { groupSpec, hedgeSpec } from '@sandlot/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { scriptedRun } from '../simulation/scripted-run.ts'
import { nextDueMs } from './advance.ts'

const worker = { type: 'worker_attached', worker: 'w', slots: 8, held: [] } as const
/** No two sums of such numbers can be relied on to be the same. */
const ms = (max: number) => fc.double({ min: 10, max, noNaN: true })

test.each([
  ['cut', { group: groupSpec.parse({ size: 2, need: 1, cut: { after: 500 } }) }],
  ['hedged', { hedge: hedgeSpec.parse({ after: 500 }) }],
] as const)('what is to be %s at a time is, when that time is looked at', (_, spec) => {
  fc.assert(
    fc.property(ms(1e9), ms(5e3), (startMs, waitMs) => {
      const script = scriptedRun({ concurrency: 4, ...spec })
      script.nowMs += startMs
      script.tell(worker)
      script.nowMs += waitMs
      script.put(1)
      const dueMs = nextDueMs(script.run)
      if (dueMs === null) throw new Error('nothing is due')
      script.nowMs = dueMs
      const { events } = script.tell({ type: 'tick' })
      expect(events).not.toEqual([])
      expect(nextDueMs(script.run)).toBeGreaterThan(dueMs)
    }),
  )
})
