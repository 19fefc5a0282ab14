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
