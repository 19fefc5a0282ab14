import { describe, expect, test } from 'vitest'
import { commandTests } from './command-tests.ts'
import { differenceTests } from './difference-tests.ts'
import { diskTests } from './disk-tests.ts'
import type { DriverHarness, OpenedDriver } from './harness.ts'
import { identityTests } from './identity-tests.ts'
import { lifeTests } from './life-tests.ts'
import { limitTests } from './limit-tests.ts'
import { memoryTests } from './memory-tests.ts'
import { portTests } from './port-tests.ts'
import { recoverTests } from './recover-tests.ts'
import { restoredBlankTests } from './restored-blank-tests.ts'
import { terminalTests } from './terminal-tests.ts'
import { worldTests } from './world-tests.ts'

/** Declares a test that gets a driver of its own, and checks that nothing is left of it afterwards. */
export type DriverTest = (name: string, body: (opened: OpenedDriver) => Promise<void>) => void

/** What every driver promises. Called in a test file with what is special about one driver. */
export function driverConformance(harness: DriverHarness): void {
  const driverTest: DriverTest = (name, body) =>
    test(name, async () => {
      const opened = await harness.open()
      try {
        await body(opened)
      } finally {
        await opened.driver[Symbol.asyncDispose]()
        const leaks = await opened.leaks()
        await opened.close()
        expect(leaks).toEqual([])
      }
    })
  describe(`driver ${harness.name}`, () => {
    describe('life', () => lifeTests(harness, driverTest))
    describe('commands', () => commandTests(harness, driverTest))
    describe('terminals', () => terminalTests(harness, driverTest))
    describe('limits', () => limitTests(harness, driverTest))
    describe('disks', () => diskTests(harness, driverTest))
    describe('worlds', () => worldTests(harness, driverTest))
    describe('ports', () => portTests(harness, driverTest))
    describe('memory', () => memoryTests(harness, driverTest))
    describe('identity', () => identityTests(harness, driverTest))
    describe('restored ahead', () => restoredBlankTests(harness, driverTest))
    describe('differences', () => differenceTests(harness, driverTest))
    describe('recovery', () => recoverTests(harness, driverTest))
  })
}
