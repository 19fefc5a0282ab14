import type { Clock, Engine } from '@sandlot/engine'
import type { NodePort } from '../node/port.ts'
import type { FunctionHost } from './functions/function-host.ts'
import type { SandboxKeeper } from './leaving.ts'
import type { RunServices } from './live-run.ts'

export interface CoordinatorOptions {
  readonly engine: Engine
  readonly node: NodePort
  readonly clock: Clock
  readonly keeper: SandboxKeeper
  /** Where functions run that are the workers of runs. Default: nowhere. */
  readonly functions?: FunctionHost
  /** Of what sandboxes cost. Default: nothing has a price. */
  readonly currency?: string | null
  /** A content was stored for a project. */
  readonly onStored?: (project: string, blob: string) => Promise<void>
  /** Digest of an image; undefined where there is none of this id. */
  imageDigest(image: string): Promise<string | undefined>
  /** For the daemon's log: something of ours failed, and is tried again. */
  warn(message: string, error: unknown): void
}

/** What the whole coordinator works with. */
export interface CoordinatorServices
  extends CoordinatorOptions,
    Omit<RunServices, 'finished' | 'failed'> {}
