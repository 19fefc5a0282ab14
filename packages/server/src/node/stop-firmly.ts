import { deadline } from '@sandlot/engine'
import type { Fate, RuntimeDriver, Sandbox } from '@sandlot/runtime'
import type { Logger } from 'pino'
import { SERVER_LIMITS } from '../limits.ts'

/** Stops a sandbox; tries again where that fails, and says at last that it could not be done. Never throws. */
export async function stopFirmly(
  sandbox: Sandbox,
  { driver, log }: { readonly driver: RuntimeDriver; readonly log: Logger },
): Promise<Fate> {
  for (let tries = 1; ; tries++) {
    try {
      using late = deadline(SERVER_LIMITS.stopMs)
      return await driver.stop(sandbox, late)
    } catch (error) {
      log.error({ err: error, sandbox: sandbox.id, tries }, 'a sandbox could not be stopped')
      if (tries < SERVER_LIMITS.stopTries) continue
      const usage = { cpuMs: 0, memoryBytes: 0, memoryPeakBytes: 0, diskBytes: 0 }
      return { kind: 'lost', detail: `it could not be stopped: ${String(error)}`, usage }
    }
  }
}
