import type { Duplex } from 'node:stream'
import { expect } from 'vitest'
import type { RuntimeDriver, Sandbox } from '../driver.ts'
import type { DriverTest } from './driver.ts'
import { type DriverHarness, shellSpec, specFor } from './harness.ts'
import { SHELL } from './shell-texts.ts'

/** Where the suite's server listens, which repeats what it is told. */
const ECHO = 8_200
/** It takes connections and closes each at once. */
const CLOSES = 8_201
/** Of the relay. */
const RELAY = 61_080
const HANGS_MS = 60_000

export function portTests(harness: DriverHarness, driverTest: DriverTest): void {
  const serving = async (driver: RuntimeDriver): Promise<Sandbox> => {
    const sandbox = await driver.create(specFor(harness, { relayPort: RELAY }))
    const listens = sandbox.guest.ports.wait(ECHO, { timeoutMs: HANGS_MS })
    sandbox.guest.exec.start({ ...shellSpec(SHELL.ports), stdin: false, mode: 'buffered' })
    await listens
    await sandbox.guest.ports.wait(CLOSES, { timeoutMs: HANGS_MS })
    return sandbox
  }

  driverTest(
    'a connection reaches what listens inside, both ways to the end',
    async ({ driver }) => {
      const { guest } = await serving(driver)
      const connections = await Promise.all([1, 2].map(() => guest.ports.connect(ECHO)))
      for (const connection of connections) {
        connection.end(Buffer.alloc(1_000_000, 'x'))
        expect((await bytesOf(connection)).length).toBe(1_000_000)
      }
      expect(await guest.ports.list()).toEqual(
        [ECHO, CLOSES].map((port) => ({ port, address: '127.0.0.1' })),
      )
    },
  )

  driverTest('who closes at once is heard of as an end', async ({ driver }) => {
    const { guest } = await serving(driver)
    expect(await bytesOf(await guest.ports.connect(CLOSES))).toHaveLength(0)
  })

  driverTest(
    'where nothing listens it is refused, and the relay is never reached',
    async (opened) => {
      const { guest } = await serving(opened.driver)
      await expect(guest.ports.connect(8_202)).rejects.toMatchObject({ code: 'refused' })
      for (const port of [RELAY, 0, 65_536]) {
        await expect(guest.ports.connect(port)).rejects.toMatchObject({ code: 'invalid' })
      }
    },
  )

  driverTest('a wait ends with its signal', async ({ driver }) => {
    const { guest } = await driver.create(specFor(harness))
    const leaving = new AbortController()
    const waits = guest.ports.wait(8_202, { signal: leaving.signal })
    leaving.abort(new Error('left'))
    await expect(waits).rejects.toThrow('left')
    await expect(guest.ports.wait(8_202, { timeoutMs: 50 })).rejects.toThrow()
  })

  driverTest('a connection ends with its sandbox', async ({ driver }) => {
    const sandbox = await serving(driver)
    const connection = await sandbox.guest.ports.connect(ECHO)
    const closed = new Promise((resolve) => connection.once('close', resolve))
    await driver.stop(sandbox)
    await closed
    await expect(sandbox.guest.ports.connect(ECHO)).rejects.toThrow('lost')
  })
}

async function bytesOf(connection: Duplex): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(connection))
}
