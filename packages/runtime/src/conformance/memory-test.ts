import { join } from 'node:path'
import { expect } from 'vitest'
import type { RuntimeDriver } from '../driver.ts'
import type { DriverTest } from './driver.ts'
import { type DriverHarness, specFor } from './harness.ts'

type MemoryTest = (
  name: string,
  body: (driver: RuntimeDriver, path: (name: string) => string) => Promise<void>,
) => void

/**
 * Declares tests of saved memory, each with a place for checkpoints. Drivers without the capability refuse; those with it have real
 * processes that go on.
 */
export function memoryTestOf(harness: DriverHarness, driverTest: DriverTest): MemoryTest {
  return (name, body) =>
    driverTest(name, async ({ driver, directory }) => {
      if (driver.capabilities.memorySnapshot) return body(driver, (each) => join(directory, each))
      const spec = () => specFor(harness, { checkpointable: true })
      const sandbox = await driver.create(spec())
      const options = { leaveRunning: true }
      const refused = { code: 'unsupported' }
      await expect(driver.checkpoint(sandbox, '/none', options)).rejects.toMatchObject(refused)
      await expect(driver.restore(spec(), '/none')).rejects.toMatchObject(refused)
    })
}
