import { expect } from 'vitest'
import type { DriverTest } from './driver.ts'
import { type DriverHarness, shell, specFor } from './harness.ts'
import { memoryTestOf } from './memory-test.ts'
import { seenBy, startWitness } from './witness.ts'

const MARKS = 'cat /etc/machine-id /dev/sandlot-seed'

/** What tells a sandbox from its copies is right whenever a process looks. */
export function identityTests(harness: DriverHarness, driverTest: DriverTest): void {
  const memoryTest = memoryTestOf(harness, driverTest)
  const newSpec = () => specFor(harness, { checkpointable: true })

  memoryTest('a copy is one of its own from its first moment', async (driver, path) => {
    const original = await driver.create(newSpec())
    await startWitness(original)
    await driver.checkpoint(original, path('c'), { leaveRunning: true })
    const own = await seenBy(original)
    expect(own).toHaveLength(1)
    const { layers, limits } = newSpec()
    const checkpoint = { directory: path('c'), layers, limits }
    const copies = [
      await driver.restore(newSpec(), path('c')),
      await driver.restore(newSpec(), path('c')),
      await driver.checkout(await driver.createBlank({ checkpoint }), newSpec()),
      await driver.checkout(await driver.createBlank({ checkpoint }), newSpec()),
    ]
    const all = await Promise.all(copies.map(seenBy))
    for (const [n, seen] of all.entries()) {
      expect(seen).toEqual([own[0], expect.anything()])
      // As often as it was seen before the memory was saved: never in a copy.
      expect(seen[1]?.looksBefore).toBe(all[0]?.[1]?.looksBefore)
      const marks = await shell(copies[n] ?? original, MARKS)
      expect(marks.stdout).toBe(`${seen[1]?.machineId}\n${seen[1]?.seed}\n`)
    }
    for (const mark of ['seed', 'machineId'] as const) {
      const values = [...own, ...all.map(([, second]) => second)].map((seen) => seen?.[mark])
      expect(new Set(values).size).toBe(1 + copies.length)
    }
  })

  memoryTest('a copy of a copy is another one', async (driver, path) => {
    const original = await driver.create(newSpec())
    await startWitness(original)
    await driver.checkpoint(original, path('c'), { leaveRunning: false })
    const copy = await driver.restore(newSpec(), path('c'))
    const seen = await seenBy(copy)
    await driver.checkpoint(copy, path('next'), { leaveRunning: false })
    const next = await driver.restore(newSpec(), path('next'))
    expect(await seenBy(next)).toEqual([...seen, expect.anything()])
  })

  memoryTest('one that goes on under its own id stays who it is', async (driver, path) => {
    const spec = newSpec()
    let sandbox = await driver.create(spec)
    await startWitness(sandbox)
    const { stdout } = await shell(sandbox, MARKS)
    for (const pause of ['first', 'second']) {
      await driver.checkpoint(sandbox, path(pause), { leaveRunning: false })
      sandbox = await driver.restore(spec, path(pause))
      expect(await seenBy(sandbox)).toHaveLength(1)
      expect(await shell(sandbox, MARKS)).toMatchObject({ stdout })
    }
    await driver.openGradeWorld(sandbox, { world: 'grade', shows: 'main' })
    expect(await shell(sandbox, MARKS, { world: 'grade' })).toMatchObject({ stdout })
  })
}
