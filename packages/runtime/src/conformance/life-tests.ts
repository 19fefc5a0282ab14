import { expect } from 'vitest'
import { FATES } from '../driver.ts'
import { GuestLost } from '../guest/guest-error.ts'
import type { DriverTest } from './driver.ts'
import { type DriverHarness, readText, shell, specFor } from './harness.ts'
import { SHELL } from './shell-texts.ts'

/** When a start is aborted: before it, in its middle, near its end. Milliseconds. */
const ABORTS_MS = [0, 5, 30, 60, 90, 120]

export function lifeTests(harness: DriverHarness, driverTest: DriverTest): void {
  driverTest('a cold start runs commands', async ({ driver }) => {
    const spec = specFor(harness)
    const sandbox = await driver.create(spec)
    expect(sandbox).toMatchObject({ id: spec.id, spec })
    expect(await shell(sandbox, SHELL.echo)).toMatchObject({ exitCode: 0, stdout: 'out\n' })
  })

  driverTest('a blank is dressed, and used up by it', async ({ driver }) => {
    const blank = await driver.createBlank()
    const spec = specFor(harness)
    const sandbox = await driver.checkout(blank, spec)
    expect(sandbox).toMatchObject({ id: spec.id, hostId: blank.hostId })
    expect(await shell(sandbox, SHELL.echo)).toMatchObject({ exitCode: 0, stdout: 'out\n' })
    await expect(driver.checkout(blank, specFor(harness))).rejects.toMatchObject({
      code: 'create_failed',
    })
    expect(await shell(sandbox, SHELL.echo)).toMatchObject({ exitCode: 0 })
  })

  driverTest(
    'a blank that has its layers already, or others, is dressed alike',
    async ({ driver }) => {
      const [layer] = harness.layers
      const others = layer ? [{ ...layer, digest: `sha256:${'f'.repeat(64)}` }] : []
      for (const layers of [harness.layers, others, [...others, ...harness.layers]]) {
        const blank = await driver.createBlank({ layers })
        const sandbox = await driver.checkout(blank, specFor(harness))
        expect(await shell(sandbox, SHELL.leaveDaemon)).toMatchObject({ exitCode: 0 })
        await driver.openGradeWorld(sandbox, { world: 'grade', shows: 'main' })
        expect(await readText(sandbox, 'grade', '/work')).toBe('answer\n')
      }
    },
  )

  driverTest(
    'one whose world is open already is taken by its own sort alone',
    async ({ driver }) => {
      const { layers, limits, hostname } = specFor(harness)
      const world = { layers, limits, hostname }
      const spec = specFor(harness)
      const sandbox = await driver.checkout(await driver.createBlank({ world }), spec)
      expect(sandbox).toMatchObject({ id: spec.id, spec })
      expect(await shell(sandbox, SHELL.leaveDaemon)).toMatchObject({ exitCode: 0 })
      await driver.openGradeWorld(sandbox, { world: 'grade', shows: 'main' })
      expect(await readText(sandbox, 'grade', '/work')).toBe('answer\n')

      const waiting = await driver.createBlank({ world })
      const other = specFor(harness, { limits: { memoryBytes: limits.memoryBytes * 2 } })
      await expect(driver.checkout(waiting, other)).rejects.toMatchObject({ code: 'create_failed' })
      expect(await waiting.gone).toMatchObject({ kind: 'stopped' })
    },
  )

  driverTest('many start at once and know only themselves', async ({ driver }) => {
    const specs = Array.from({ length: 6 }, () => specFor(harness))
    const sandboxes = await Promise.all(specs.map((spec) => driver.create(spec)))
    const ids = sandboxes.map(({ guest }) => guest.hello.sandbox || '')
    expect(new Set(sandboxes.map(({ hostId }) => hostId)).size).toBe(6)
    expect(ids).toHaveLength(6)
    await Promise.all(
      sandboxes.map((each) => each.guest.files.write('main', '/me', bytes(each.id))),
    )
    for (const { guest, id } of sandboxes) {
      expect(await guest.files.stat('main', '/me')).toMatchObject({ sizeBytes: id.length })
    }
  })

  driverTest('stop ends all calls, in one fate, however often', async ({ driver }) => {
    const sandbox = await driver.create(specFor(harness))
    const sleeping = shell(sandbox, SHELL.sleep)
    sleeping.catch(() => {})
    const fates = await Promise.all([driver.stop(sandbox), driver.stop(sandbox)])
    expect(fates[0]).toMatchObject({ kind: 'stopped' })
    expect(fates[1]).toEqual(fates[0])
    expect(await sandbox.gone).toEqual(fates[0])
    expect(await driver.stop(sandbox)).toEqual(fates[0])
    await expect(sleeping).rejects.toBeInstanceOf(GuestLost)
    await expect(sandbox.guest.stats()).rejects.toBeInstanceOf(GuestLost)
    await expect(driver.usage(sandbox)).rejects.toMatchObject({ code: 'sandbox_gone' })
    const grade = { world: 'grade', shows: 'main' } as const
    await expect(driver.openGradeWorld(sandbox, grade)).rejects.toMatchObject({
      code: 'sandbox_gone',
    })
  })

  driverTest('a blank that was stopped is of no use', async ({ driver }) => {
    const blank = await driver.createBlank()
    expect(await driver.stop(blank)).toMatchObject({ kind: 'stopped' })
    expect(await blank.gone).toMatchObject({ kind: 'stopped' })
    await expect(driver.checkout(blank, specFor(harness))).rejects.toMatchObject({
      code: 'sandbox_gone',
    })
  })

  driverTest('killed from outside is lost', async ({ driver, killFromOutside }) => {
    const sandbox = await driver.create(specFor(harness))
    const sleeping = shell(sandbox, SHELL.sleep)
    sleeping.catch(() => {})
    await killFromOutside(sandbox)
    expect(await sandbox.gone).toMatchObject({ kind: 'lost' })
    await expect(sleeping).rejects.toBeInstanceOf(GuestLost)
    expect(await driver.stop(sandbox)).toMatchObject({ kind: 'lost' })
  })

  driverTest('a lifetime ends it', async ({ driver }) => {
    const sandbox = await driver.create(specFor(harness, { lifetimeMs: 5_000 }))
    expect(await sandbox.gone).toMatchObject({ kind: 'expired' })
  })

  driverTest('an aborted start leaves nothing', async ({ driver, leaks }) => {
    for (const delayMs of ABORTS_MS) {
      const signal = AbortSignal.timeout(delayMs)
      const outcome = await driver.create(specFor(harness), { signal }).then(
        (sandbox) => driver.stop(sandbox),
        (error) => error,
      )
      if (FATES.includes(outcome.kind)) continue
      expect(outcome).toBe(signal.reason)
    }
    const aborted = AbortSignal.abort(new Error('too late'))
    await expect(driver.createBlank({ signal: aborted })).rejects.toThrow('too late')
    expect((await leaks()).filter((line) => !line.includes('helper'))).toEqual([])
  })

  driverTest('an aborted checkout ends the blank', async ({ driver, leaks }) => {
    const blank = await driver.createBlank()
    const signal = AbortSignal.abort(new Error('too late'))
    await expect(driver.checkout(blank, specFor(harness), { signal })).rejects.toThrow('too late')
    await blank.gone
    await driver.stop(blank)
    expect((await leaks()).filter((line) => !line.includes('helper'))).toEqual([])
  })

  driverTest('what it uses is told while it lives and in its fate', async ({ driver }) => {
    const sandbox = await driver.create(specFor(harness))
    const usage = await driver.usage(sandbox)
    expect(usage.memoryBytes).toBeGreaterThan(2 ** 20)
    const fate = await driver.stop(sandbox)
    expect(fate.usage.memoryPeakBytes).toBeGreaterThanOrEqual(usage.memoryBytes)
    expect(fate.usage.cpuMs).toBeGreaterThanOrEqual(usage.cpuMs)
  })
}

function bytes(text: string): Uint8Array {
  return Buffer.from(text)
}
