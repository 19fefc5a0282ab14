import { type SandboxPaths, sharedRoot } from './paths.ts'

/** How system calls of guests are caught; the better choice depends on the load. */
export interface SystrapOptions {
  /**
   * The fast path spins briefly for the next system call: better latency with idle cores. Off: up to 30 % more
   * throughput when cores are oversubscribed. Default: on.
   */
  readonly fastPath?: boolean
  /** Off helps loads that start many short programs. Default: on. */
  readonly syscallPatching?: boolean
}

/** Flags of every call of the runtime for one sandbox; they must be the same each time. */
export function runscFlags(
  stateDirectory: string,
  paths: SandboxPaths,
  systrap: SystrapOptions,
  network: 'none' | 'sandbox' = 'none',
): readonly string[] {
  return [
    `--root=${paths.root}`,
    `--shared-root=${sharedRoot(stateDirectory)}`,
    `--log=${paths.runscLog}`,
    '--log-format=json',
    `--panic-log=${paths.panicLog}`,
    '--platform=systrap',
    `--network=${network}`,
    '--ignore-cgroups',
    '--host-settings=ignore',
    '--control-rpc-stop-timeout=0',
    '--in-sandbox-cgroup=v2',
    '--overlay2=none',
    // One that gofers share would be a mount on the host, which nobody removes.
    '--gofer-network-namespace=new',
    '--host-uds=none',
    '--host-fifo=none',
    ...(systrap.fastPath === false ? ['--systrap-disable-fast-path'] : []),
    ...(systrap.syscallPatching === false ? ['--systrap-disable-syscall-patching'] : []),
  ]
}
