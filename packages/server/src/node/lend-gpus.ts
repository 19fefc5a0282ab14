import type { Entry } from './entry.ts'
import type { NodeParts } from './sandboxes.ts'

/** What its commands need in their environment to find the GPUs that it has room with; what anybody set stays. */
export async function lendGpus({ driver }: Pick<NodeParts, 'driver'>, entry: Entry): Promise<void> {
  const gpus = entry.room?.gpus ?? []
  if (gpus.length === 0) return
  const { LD_LIBRARY_PATH: folders, ...needed } = await driver.gpuEnvironment(gpus)
  const { env } = entry.record
  const paths = [env.LD_LIBRARY_PATH, folders].filter((path) => path).join(':')
  entry.record = {
    ...entry.record,
    env: { ...needed, ...env, ...(paths === '' ? {} : { LD_LIBRARY_PATH: paths }) },
  }
}
