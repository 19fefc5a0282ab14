import type { Layer } from '../driver.ts'
import type { DiskMount } from './disk-files.ts'
import { IDENTITY_MOUNT } from './identity-image.ts'
import { type LentNodes, lentDevices, lentMounts } from './lent.ts'

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
 * (what is in it can be read inside). Without an owner it is a blank.
 */
export function bundleConfig(options: {
  readonly agentImage: string
  /** A directory that exists; nothing of it is seen inside. */
  readonly emptyRoot: string
  readonly layers: readonly Layer[]
  /** Writable layers on the machine's disk. Default: none. */
  readonly disks?: readonly DiskMount[]
  /** The image of what tells it from its copies. Default: it is never copied. */
  readonly identity?: string | undefined
  /** The network namespace whose interfaces it takes over. Default: one of its own, with nothing in it. */
  readonly networkNamespace?: string | undefined
  /** What of the machine it is given. Default: nothing. */
  readonly lent?: LentNodes | undefined
}): object {
  const { agentImage, emptyRoot, layers, disks = [], identity, networkNamespace, lent } = options
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
      ...layers.map(({ path }, index) => imageMount(layerMountPoint(index), path)),
      ...(identity === undefined ? [] : [imageMount(IDENTITY_MOUNT, identity)]),
      ...diskMounts(disks, emptyRoot),
      ...lentMounts(lent),
    ],
    annotations: {
      'dev.gvisor.spec.rootfs.type': 'erofs',
      'dev.gvisor.spec.rootfs.source': agentImage,
      ...Object.assign({}, ...disks.map(diskHint)),
    },
    linux: {
      ...(lent ? { devices: lentDevices(lent) } : {}),
      namespaces: [
        ...['pid', 'ipc', 'uts', 'mount'].map((type) => ({ type })),
        { type: 'network', ...(networkNamespace ? { path: networkNamespace } : {}) },
      ],
    },
  }
}

function imageMount(destination: string, source: string): object {
  return { destination, type: 'erofs', source, options: ['ro'] }
}

/** The runtime makes files for its file systems only where it starts a gofer, which it does for a directory of the host alone. */
function diskMounts(disks: readonly DiskMount[], emptyRoot: string): readonly object[] {
  if (disks.length === 0) return []
  const bind = { type: 'bind', options: ['rw'] }
  return [
    { destination: '/gofer', type: 'bind', source: emptyRoot, options: ['ro'] },
    ...disks.map(({ world, directory }) => ({
      ...bind,
      destination: `/disk/${world}`,
      source: directory,
    })),
  ]
}

/** Nothing of the directory is seen inside: the mount is a file system of the sandbox's own, whose pages are in a file there. */
function diskHint({ world, directory, bytes }: DiskMount): Record<string, string> {
  const name = `dev.gvisor.spec.mount.${world}`
  return {
    [`${name}.source`]: directory,
    [`${name}.type`]: 'tmpfs',
    [`${name}.share`]: 'container',
    [`${name}.options`]: `rw,size=${bytes},mode=755`,
  }
}
