import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import type { Cgroups } from './cgroups.ts'
import { cgroupsV1 } from './v1.ts'
import { cgroupsV2 } from './v2.ts'

/** What this machine has. Undefined where neither version has all the controllers that are needed. */
export function detectCgroups(parent: string, root = '/sys/fs/cgroup'): Cgroups | undefined {
  const controllers = readOr(join(root, 'cgroup.controllers'), '').split(/\s+/)
  if (['memory', 'cpu', 'pids'].every((name) => controllers.includes(name))) {
    return cgroupsV2(root, parent)
  }
  const mount = (name: string) => join(root, name)
  if (!['memory', 'cpu', 'cpuacct', 'pids'].every((name) => existsSync(mount(name)))) {
    return undefined
  }
  // `cpu` is often a link to `cpu,cpuacct`: one directory, used once.
  const mounts = {
    memory: realpathSync(mount('memory')),
    cpu: realpathSync(mount('cpu')),
    cpuacct: realpathSync(mount('cpuacct')),
    pids: realpathSync(mount('pids')),
  }
  return cgroupsV1(mounts, parent)
}

function readOr(path: string, otherwise: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return otherwise
  }
}
