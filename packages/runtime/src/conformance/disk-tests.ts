import { expect } from 'vitest'
import { GuestLost } from '../guest/guest-error.ts'
import type { DriverTest } from './driver.ts'
import { type DriverHarness, readText, shell, specFor } from './harness.ts'
import { SHELL } from './shell-texts.ts'

const MIB = 2 ** 20
/** More than memory holds, and as much as `fillLarge` writes. */
const LARGE = { memoryBytes: 128 * MIB, diskBytes: 256 * MIB }

export function diskTests(harness: DriverHarness, driverTest: DriverTest): void {
  const large = () => specFor(harness, { limits: LARGE })

  driverTest('a disk larger than the memory is filled to its size', async ({ driver }) => {
    const sandbox = await driver.create(large())
    expect(await shell(sandbox, SHELL.fillLarge)).toMatchObject({
      stdout: `1\n${LARGE.diskBytes}\n`,
    })
    if (driver.capabilities.limits) {
      const { diskBytes, memoryBytes } = await driver.usage(sandbox)
      expect(diskBytes).toBeGreaterThan(LARGE.diskBytes * 0.9)
      expect(memoryBytes).toBeLessThan(LARGE.memoryBytes)
      // What the machine writes out meanwhile may change it by a little.
      const difference = async () =>
        (await driver.diskSpace()).heldBytes - (await driver.usage(sandbox)).diskBytes
      await expect.poll(difference).toBe(0)
      await shell(sandbox, 'rm /fill')
      // Whoever deletes has it back, and the machine too.
      const held = async () => (await driver.diskSpace()).heldBytes
      await expect.poll(held).toBeLessThan(LARGE.diskBytes / 10)
    }
    const { usage } = await driver.stop(sandbox)
    expect(usage.diskBytes).toBeLessThan(LARGE.diskBytes / 10)
    expect((await driver.diskSpace()).heldBytes).toBe(0)
  })

  driverTest('files on the disk leave the memory to processes', async ({ driver }) => {
    const sandbox = await driver.create(large())
    await shell(sandbox, SHELL.fillLarge)
    await expect(shell(sandbox, SHELL.eatMemory)).rejects.toBeInstanceOf(GuestLost)
    expect((await sandbox.gone).kind).toBe('oom_limit')
  })

  driverTest('a grader writes over a disk that the episode has filled', async ({ driver }) => {
    const sandbox = await driver.create(large())
    await shell(sandbox, SHELL.leaveDaemon)
    await shell(sandbox, SHELL.fillLarge)
    await driver.openGradeWorld(sandbox, { world: 'grade', shows: 'main' })
    const replaced = await shell(sandbox, SHELL.replace, { world: 'grade' })
    expect(replaced).toMatchObject({ stdout: 'changed\n' })
    expect(await readText(sandbox, 'main', '/work')).toBe('answer\n')
    await driver.openGradeWorld(sandbox, { world: 'control', shows: 'image' })
    await expect(readText(sandbox, 'control', '/work')).rejects.toMatchObject({ code: 'not_found' })
  })

  driverTest('only a blank that was opened for it has a place for it', async ({ driver }) => {
    if (!driver.capabilities.hotMount) return
    const spec = large()
    const blank = await driver.createBlank()
    await expect(driver.checkout(blank, spec)).rejects.toMatchObject({ code: 'unsupported' })
    const { layers, limits, hostname } = spec
    const opened = await driver.createBlank({ world: { layers, limits, hostname } })
    const sandbox = await driver.checkout(opened, spec)
    expect(await shell(sandbox, SHELL.fillLarge)).toMatchObject({
      stdout: `1\n${LARGE.diskBytes}\n`,
    })
  })

  driverTest('the next daemon knows how much it takes', async ({ orphan }) => {
    await using driver = await orphan([large()])
    const [sandbox] = (await driver.recover()).adopted
    if (!sandbox) throw new Error('it was not adopted')
    await shell(sandbox, SHELL.fillLarge)
    if (!driver.capabilities.limits) return
    expect((await driver.usage(sandbox)).diskBytes).toBeGreaterThan(LARGE.diskBytes * 0.9)
  })
}
