import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { ReceiveCredit, SendCredit } from './credit.ts'
import { FRAME_LIMITS } from './frame.ts'

test('two ends agree, a window is never exceeded, and a sender is never left without credit', () => {
  const window = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 2_000_000 }))
  const sends = fc.array(fc.integer({ min: 1, max: 65_536 }), { minLength: 1, maxLength: 200 })
  fc.assert(
    fc.property(window, sends, fc.array(fc.nat(200_000)), (wider, sizes, reads) => {
      const sender = new SendCredit()
      const receiver = new ReceiveCredit()
      const most = Math.max(wider, FRAME_LIMITS.window)
      sender.grant(receiver.widen(wider))
      let held = 0
      for (const [i, size] of sizes.entries()) {
        const bytes = Math.min(size, sender.left)
        sender.spend(bytes)
        expect(receiver.receive(bytes)).toBe(true)
        held += bytes
        expect(held + sender.left).toBeLessThanOrEqual(most)
        const read = Math.min(held, reads[i % Math.max(1, reads.length)] ?? held)
        held -= read
        sender.grant(receiver.consume(read))
        expect(receiver.receive(sender.left + 1)).toBe(false)
        if (held === 0) expect(sender.left).toBeGreaterThan(0)
      }
    }),
  )
})

test('credit that is not there can not be spent', () => {
  expect(() => new SendCredit().spend(FRAME_LIMITS.window + 1)).toThrow(RangeError)
})
