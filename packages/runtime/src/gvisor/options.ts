import type { GpuSettings } from '../gpu/machine-gpus.ts'
import type { OpenNetworkSettings } from '../network/open/open-network.ts'
import type { SystrapOptions } from './runsc.ts'

export interface GvisorOptions {
  /** Absolute path of the runtime's binary, of a release that is known to work. */
  readonly runsc: string
  /** Absolute path of the host helper (native/helper). */
  readonly helper: string
  /** Absolute path of the guest agent (native/agent). */
  readonly agent: string
  /**
   * For what lives with the machine: FIFOs, sockets, state files. Short, on a local file system, one daemon's alone;
   * its last name is also that of the parent of all cgroups.
   */
  readonly stateDirectory: string
  /** For what is built once and kept: the agent's image. */
  readonly dataDirectory: string
  readonly systrap: SystrapOptions
  readonly gpus: GpuSettings
  /** For sandboxes with an interface of their own. */
  readonly openNetwork: OpenNetworkSettings
  /**
   * Sandboxes started at one time. A start takes a tenth of a second of processor time and waits in between, so two for each
   * processor keep it at work; more only make each slower.
   */
  readonly startsAtOnce: number
}
