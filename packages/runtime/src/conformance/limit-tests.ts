import { expect } from 'vitest'
import { GuestLost } from '../guest/guest-error.ts'
import type { DriverTest } from './driver.ts'
import { type DriverHarness, shell, specFor } from './harness.ts'
import { SHELL } from './shell-texts.ts'

const MIB = 2 ** 20

export function limitTests(harness: DriverHarness, driverTest: DriverTest): void {
  driverTest('a sandbox sees its own limits as the machine', async ({ driver }) => {
    const sandbox = await driver.create(specFor(harness, { limits: { cpus: 0.5 } }))
    const { stdout } = await shell(sandbox, SHELL.machine)
    const [hostname, processors, memory, files] = stdout.trim().split('\n')
    expect({ hostname, processors, files }).toEqual({
      hostname: 'conformance',
      processors: '1',
      files: '256',
    })
    expect(memory).toMatch(/^MemTotal:\s+131072 kB$/)
  })

  for (const start of ['cold', 'blank'] as const) {
    driverTest(
      `over its memory a sandbox dies of it, and of nothing else (${start})`,
      async (opened) => {
        const { driver } = opened
        const [spec, other] = [specFor(harness), specFor(harness)]
        const neighbour = await driver.create(other)
        const sandbox =
          start === 'cold'
            ? await driver.create(spec)
            : await driver.checkout(await driver.createBlank(), spec)
        await expect(shell(sandbox, SHELL.eatMemory)).rejects.toBeInstanceOf(GuestLost)
        const fate = await sandbox.gone
        expect(fate.kind).toBe('oom_limit')
        if (driver.capabilities.limits) {
          expect(fate.detail).toMatch(/oom_kill \d+, peak \d+ MiB of \d+ MiB: its limit was hit/)
          expect(fate.usage.memoryPeakBytes).toBeGreaterThan(128 * MIB)
        }
        expect(await shell(neighbour, SHELL.exit7)).toMatchObject({ exitCode: 7 })
      },
    )
  }

  driverTest('a full disk is ENOSPC, and the sandbox lives', async ({ driver }) => {
    const sandbox = await driver.create(specFor(harness))
    expect(await shell(sandbox, SHELL.fillDisk)).toMatchObject({ stdout: '1\nx\n' })
    expect(await shell(sandbox, SHELL.manyFiles)).toMatchObject({
      stdout: 'No space left on device\n',
    })
    const tooMuch = Buffer.alloc(33 * MIB)
    await expect(sandbox.guest.files.write('main', '/big', tooMuch)).rejects.toMatchObject({
      code: 'no_space',
    })
  })

  driverTest('with every file system full its memory is still its own', async ({ driver }) => {
    const sandbox = await driver.checkout(await driver.createBlank(), specFor(harness))
    expect(await shell(sandbox, SHELL.fillAll)).toMatchObject({ stdout: '100663296\n' })
  })

  driverTest('too many processes are refused, and can be killed', async ({ driver }) => {
    const { guest, ...sandbox } = await driver.create(specFor(harness))
    const bomb = await shell({ guest, ...sandbox }, SHELL.forkBomb, { exec: 'bomb', keep: true })
    expect(bomb).toMatchObject({ exitCode: 3, stdout: 'refused\n' })
    await guest.exec.kill('bomb', 9)
    const left = async () => (await guest.processes('main')).filter(({ exec }) => exec === 'bomb')
    await expect.poll(left).toEqual([])
    expect(await shell({ guest, ...sandbox }, SHELL.exit7)).toMatchObject({ exitCode: 7 })
  })
}
