import type { Layer } from '@sandlot/runtime'

const NAMESPACES = ['pid', 'ipc', 'uts', 'mount', 'network'].map((type) => ({ type }))

/** What a person would write: the image as root file system with a writable layer in memory, and one program. */
export function plainBundle(options: {
  readonly layer: Layer
  readonly emptyRoot: string
  readonly diskBytes: number
}): object {
  return {
    ociVersion: '1.1.0',
    hostname: 'raw',
    process: {
      terminal: false,
      user: { uid: 0, gid: 0 },
      // One program gives one result; the sandbox lives on until it is killed.
      args: ['/bin/sh', '-c', 'echo 0; read ended'],
      cwd: '/',
      env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
      noNewPrivileges: true,
    },
    root: { path: options.emptyRoot, readonly: false },
    mounts: [{ destination: '/proc', type: 'proc', source: 'proc' }],
    annotations: {
      'dev.gvisor.spec.rootfs.type': 'erofs',
      'dev.gvisor.spec.rootfs.source': options.layer.path,
      'dev.gvisor.spec.rootfs.overlay': 'memory',
      'dev.gvisor.spec.rootfs.options': `size=${options.diskBytes}`,
    },
    linux: { namespaces: NAMESPACES },
  }
}

const CAPABILITIES = [
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

/** The agent on its own root, with the image's layers as mounts: what native/agent/README.md asks of a host. */
export function agentBundle(options: {
  readonly agentImage: string
  readonly layers: readonly Layer[]
  readonly emptyRoot: string
}): object {
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
      rlimits: [{ type: 'RLIMIT_NOFILE', hard: 65_536, soft: 65_536 }],
      capabilities: { bounding: CAPABILITIES, effective: CAPABILITIES, permitted: CAPABILITIES },
    },
    root: { path: options.emptyRoot, readonly: false },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc' },
      ...options.layers.map(({ path }, index) => ({
        destination: `/img/${index}`,
        type: 'erofs',
        source: path,
        options: ['ro'],
      })),
    ],
    annotations: {
      'dev.gvisor.spec.rootfs.type': 'erofs',
      'dev.gvisor.spec.rootfs.source': options.agentImage,
    },
    linux: { namespaces: NAMESPACES },
  }
}
