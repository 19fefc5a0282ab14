import { join } from 'node:path'
import { expect } from 'vitest'
import type { CheckpointSource } from '../driver.ts'
import { askCounter, startCounter } from './counter.ts'
import type { DriverTest } from './driver.ts'
import { type DriverHarness, type OpenedDriver, shell, specFor } from './harness.ts'

/** Of the counter, at the least. */
const STEP_MS = 10

/** Blanks that are restored ahead of need. Drivers without the capability refuse. */
export function restoredBlankTests(harness: DriverHarness, driverTest: DriverTest): void {
  const spec = (over: Parameters<typeof specFor>[1] = {}) =>
    specFor(harness, { checkpointable: true, ...over })
  const { layers, limits } = spec()

  const restoredTest = (
    name: string,
    body: (opened: OpenedDriver, checkpoint: CheckpointSource) => Promise<void>,
  ) =>
    driverTest(name, async (opened) => {
      const checkpoint = { directory: join(opened.directory, 'c'), layers, limits }
      if (opened.driver.capabilities.memorySnapshot) return body(opened, checkpoint)
      const refused = { code: 'unsupported' }
      await expect(opened.driver.createBlank({ checkpoint })).rejects.toMatchObject(refused)
    })

  restoredTest('nothing in one runs until it is checked out', async ({ driver }, checkpoint) => {
    const original = await driver.create(spec())
    await startCounter(original)
    await driver.checkpoint(original, checkpoint.directory, { leaveRunning: true })
    const saved = await askCounter(original)
    const [waiting, twin] = await Promise.all([
      driver.createBlank({ checkpoint }),
      driver.restore(spec(), checkpoint.directory),
    ])
    await expect.poll(() => askCounter(twin), { timeout: 150_000 }).toBeGreaterThan(saved + 500)
    const takenAtMs = performance.now()
    const sandbox = await driver.checkout(waiting, spec())
    const counted = (await askCounter(sandbox)) - saved
    // It has run since, for as long as it took to ask, and a step takes a hundredth of a second or more.
    expect(counted).toBeLessThan((performance.now() - takenAtMs) / STEP_MS + 50)
  })

  restoredTest('each that is checked out is one of its own', async ({ driver }, checkpoint) => {
    const original = await driver.create(spec({ hostname: 'original' }))
    await shell(original, 'echo kept > /kept')
    await driver.checkpoint(original, checkpoint.directory, { leaveRunning: false })
    const waiting = await Promise.all([1, 2].map(() => driver.createBlank({ checkpoint })))
    const seen = new Set<string>()
    for (const [n, blank] of waiting.entries()) {
      const given = spec({ hostname: `copy-${n}`, lifetimeMs: 600_000 })
      const sandbox = await driver.checkout(blank, given)
      expect(sandbox).toMatchObject({ id: given.id, hostId: blank.hostId, spec: given })
      const text = 'cat /kept; hostname; cat /etc/machine-id /dev/sandlot-seed'
      const [kept, hostname, ...marks] = (await shell(sandbox, text)).stdout.trim().split('\n')
      expect([kept, hostname]).toEqual(['kept', `copy-${n}`])
      for (const mark of marks) seen.add(mark)
      await expect(driver.checkout(blank, spec())).rejects.toMatchObject({ code: 'create_failed' })
      // What it has become can be saved in turn.
      const next = `${checkpoint.directory}${n}`
      expect(await driver.checkpoint(sandbox, next, { leaveRunning: true })).toMatchObject({
        limits,
      })
    }
    expect(seen.size).toBe(4)
  })

  restoredTest('what does not fit is refused before or after', async ({ driver }, checkpoint) => {
    const original = await driver.create(spec())
    await driver.checkpoint(original, checkpoint.directory, { leaveRunning: false })
    const other = { ...limits, pidsMax: limits.pidsMax - 1 }
    const start = driver.createBlank({ checkpoint: { ...checkpoint, limits: other } })
    await expect(start).rejects.toMatchObject({ code: 'snapshot_incompatible' })
    const blank = await driver.createBlank({ checkpoint })
    const taken = driver.checkout(blank, spec({ limits: other }))
    await expect(taken).rejects.toMatchObject({ code: 'create_failed' })
    expect(await blank.gone).toMatchObject({ kind: 'stopped' })
  })

  restoredTest('one that dies waiting is of no use', async (opened, checkpoint) => {
    const { driver } = opened
    const original = await driver.create(spec())
    await driver.checkpoint(original, checkpoint.directory, { leaveRunning: false })
    const [killed, stopped] = [
      await driver.createBlank({ checkpoint }),
      await driver.createBlank({ checkpoint }),
    ]
    await opened.killFromOutside(killed)
    expect(await killed.gone).toMatchObject({ kind: 'lost' })
    expect(await driver.stop(stopped)).toMatchObject({ kind: 'stopped' })
    for (const dead of [killed, stopped]) {
      await expect(driver.checkout(dead, spec())).rejects.toMatchObject({ code: 'sandbox_gone' })
    }
  })

  restoredTest('an abort leaves nothing', async (opened, checkpoint) => {
    const { driver } = opened
    const original = await driver.create(spec())
    await driver.checkpoint(original, checkpoint.directory, { leaveRunning: false })
    for (const delayMs of [0, 40, 90, 150]) {
      const signal = AbortSignal.timeout(delayMs)
      const blank = await driver.createBlank({ checkpoint, signal }).catch((error) => {
        expect(error).toBe(signal.reason)
      })
      if (!blank) continue
      const aborted = AbortSignal.abort(new Error('too late'))
      await expect(driver.checkout(blank, spec(), { signal: aborted })).rejects.toThrow('too late')
    }
    expect((await opened.leaks()).filter((line) => !line.includes('helper'))).toEqual([])
  })
}
