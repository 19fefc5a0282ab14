import { pythonImage, whyNoGvisor } from '@sandlot/testkit'
import type { Sandlot } from 'sandlot'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { RealDaemon, type RealDaemonOptions } from './daemon.ts'

/** What the tests of one file share. */
export interface Story {
  readonly daemon: RealDaemon
  readonly client: Sandlot
  /** Id of an image with a shell, coreutils and python3. */
  readonly image: string
}

/**
 * The tests of one file, against a daemon of their own; afterwards nothing of it is left on the machine. On a machine that can't run
 * gVisor it is one skipped test that says why.
 */
export async function story(
  name: string,
  options: RealDaemonOptions,
  tests: (story: Story) => void,
): Promise<void> {
  const reason = await whyNoGvisor()
  if (reason !== '') {
    describe(name, () => test.skip(`skipped: ${reason}`, () => {}))
    return
  }
  const { id } = await pythonImage()
  let daemon: RealDaemon | undefined
  let client: Sandlot | undefined
  const started = <T>(value: T | undefined): T => {
    if (value === undefined) throw new Error('the daemon runs during the tests alone')
    return value
  }
  describe(name, () => {
    beforeAll(async () => {
      daemon = await RealDaemon.start(options)
      client = daemon.client()
    })
    afterAll(async () => await daemon?.close())
    tests({
      image: id,
      get daemon() {
        return started(daemon)
      },
      get client() {
        return started(client)
      },
    })
  })
}
