import { readFile } from 'node:fs/promises'
import {
  findLeaks,
  gvisorPlaces,
  orphanSandboxes,
  pythonImage,
  temporaryDirectory,
  whyNoGvisor,
} from '@sandlot/testkit'
import { describe, test } from 'vitest'
import { driverConformance } from '../conformance/driver.ts'
import { GvisorDriver } from './driver.ts'
import { sandboxPaths } from './paths.ts'

const reason = await whyNoGvisor()

if (reason !== '') {
  describe('driver gvisor', () => {
    test.skip(`skipped: ${reason}`, () => {})
  })
} else {
  const image = await pythonImage()

  driverConformance({
    name: 'gvisor',
    layers: image.layers.map(({ digest, path }) => ({ digest, path })),
    open: async () => {
      const places = await gvisorPlaces()
      const { options } = places
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
          await places[Symbol.asyncDispose]()
          await directory[Symbol.asyncDispose]()
        },
      }
    },
  })
}
