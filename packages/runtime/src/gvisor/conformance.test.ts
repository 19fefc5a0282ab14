import { readFile, rm } from 'node:fs/promises'
import {
  expectNoLeaks,
  findLeaks,
  gvisorMachine,
  orphanSandboxes,
  pythonImage,
  temporaryDirectory,
} from '@sandlot/testkit'
import { afterAll, describe, test } from 'vitest'
import { driverConformance } from '../conformance/driver.ts'
import { GvisorDriver } from './driver.ts'
import type { GvisorOptions } from './options.ts'
import { sandboxPaths } from './paths.ts'

const first = await gvisorMachine()

if ('reason' in first) {
  describe('driver gvisor', () => {
    test.skip(`skipped: ${first.reason}`, () => {})
  })
} else {
  const image = await pythonImage()
  const used: GvisorOptions[] = []
  afterAll(async () => {
    for (const { stateDirectory } of used) await expectNoLeaks({ stateDirectory })
  })

  driverConformance({
    name: 'gvisor',
    layers: image.layers.map(({ digest, path }) => ({ digest, path })),
    open: async () => {
      const machine = await gvisorMachine()
      if ('reason' in machine) throw new Error(machine.reason)
      const { options } = machine
      used.push(options)
      const { stateDirectory } = options
      const directory = await temporaryDirectory()
      return {
        driver: new GvisorDriver(options),
        directory: directory.path,
        killFromOutside: async ({ hostId }) => {
          const { state } = sandboxPaths(stateDirectory, hostId)
          process.kill(JSON.parse(await readFile(state, 'utf8')).sentryPid, 'SIGKILL')
        },
        orphan: async (specs) => {
          await orphanSandboxes(
            options,
            specs.map((spec) => ({ spec })),
          )
          return new GvisorDriver(options)
        },
        leaks: () => findLeaks({ stateDirectory }),
        close: async () => {
          await rm(stateDirectory, { recursive: true, force: true })
          await directory[Symbol.asyncDispose]()
        },
      }
    },
  })
}
