import { gpuOf } from './machine-options.ts'
import { given } from './options.ts'

/** What a sandbox may use, as options of a verb. */
export interface ResourceOptions {
  readonly memory?: string
  readonly cpu?: number
  readonly disk?: string
  readonly pids?: number
  readonly pidsPerUser?: number
  readonly openFiles?: number
  readonly fileSize?: string
  readonly gpu?: string
}

/** Those that were given. */
export function resourcesOf(options: ResourceOptions) {
  const { memory, cpu, disk, pids, openFiles, fileSize } = options
  const processesPerUser = options.pidsPerUser
  const gpu = gpuOf(options.gpu)
  return given({ memory, cpu, disk, pids, processesPerUser, openFiles, fileSize, gpu })
}
