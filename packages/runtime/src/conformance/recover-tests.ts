import { expect } from 'vitest'
import type { DriverTest } from './driver.ts'
import { type DriverHarness, readText, shell, specFor } from './harness.ts'
import { SHELL } from './shell-texts.ts'

export function recoverTests(harness: DriverHarness, driverTest: DriverTest): void {
  driverTest('a machine without sandboxes has none to recover', async ({ driver }) => {
    expect(await driver.recover()).toEqual({ adopted: [], ended: [], unreadable: [] })
  })

  driverTest('the next daemon adopts what its predecessor left', async ({ orphan }) => {
    const specs = [specFor(harness), specFor(harness)]
    await using driver = await orphan(specs)
    const { adopted, ended } = await driver.recover()
    expect(ended).toEqual([])
    expect(adopted.map(({ id }) => id).sort()).toEqual(specs.map(({ id }) => id).sort())
    for (const sandbox of adopted) {
      expect(specs).toContainEqual(sandbox.spec)
      expect(await readText(sandbox, 'main', '/left')).toBe(sandbox.id)
      expect(await shell(sandbox, SHELL.exit7)).toMatchObject({ exitCode: 7 })
    }
    const [first] = adopted
    if (first) expect(await driver.stop(first)).toMatchObject({ kind: 'stopped' })
  })
}
