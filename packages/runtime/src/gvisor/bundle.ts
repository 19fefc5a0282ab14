import type { Layer } from '../driver.ts'

/** The agent alone has them; the commands of a world get six at most (native/agent). */
const AGENT_CAPABILITIES = [
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'SETGID',
  'SETUID',
  'SETPCAP',
  'SYS_CHROOT',
  'SYS_ADMIN',
  'SYS_RESOURCE',
  'MKNOD',
].map((name) => `CAP_${name}`)

const AGENT_NOFILE = 65_536

/** Where a sandbox's layers are mounted in the agent's root, bottom first. */
export function layerMountPoint(index: number): string {
  return `/img/${index}`
}

/**
 * The OCI specification of every sandbox: the agent on its own read-only root, no host path, no environment
 * (what is in it can be read inside). Without layers it is a blank.
 */
export function bundleConfig(options: {
  readonly agentImage: string
  /** A directory that exists; nothing of it is seen inside. */
  readonly emptyRoot: string
  readonly layers: readonly Layer[]
}): object {
  const { agentImage, emptyRoot, layers } = options
  return {
    ociVersion: '1.1.0',
    hostname: 'blank',
    process: {
      terminal: false,
      user: { uid: 0, gid: 0 },
      args: ['/agent'],
      cwd: '/',
      env: [],
      noNewPrivileges: true,
      rlimits: [{ type: 'RLIMIT_NOFILE', hard: AGENT_NOFILE, soft: AGENT_NOFILE }],
      capabilities: {
        bounding: AGENT_CAPABILITIES,
        effective: AGENT_CAPABILITIES,
        permitted: AGENT_CAPABILITIES,
      },
    },
    root: { path: emptyRoot, readonly: false },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc' },
      ...layers.map((layer, index) => ({
        destination: layerMountPoint(index),
        type: 'erofs',
        source: layer.path,
        options: ['ro'],
      })),
    ],
    annotations: {
      'dev.gvisor.spec.rootfs.type': 'erofs',
      'dev.gvisor.spec.rootfs.source': agentImage,
    },
    linux: {
      namespaces: ['pid', 'ipc', 'uts', 'mount', 'network'].map((type) => ({ type })),
    },
  }
}
