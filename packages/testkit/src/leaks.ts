import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'

export interface LeakScope {
  /** Of the driver under test; its last name is that of its cgroups. */
  readonly stateDirectory: string
  /** Where files of its sandboxes have a name while they start. Default: not looked at. */
  readonly dataDirectory?: string
}

/**
 * What a driver left on this machine, one line each: sandboxes' processes, cgroups, mounts, files and FIFOs, and host helpers of
 * this process. A driver that was disposed leaves nothing.
 */
export async function findLeaks(scope: LeakScope): Promise<readonly string[]> {
  const found = await Promise.all([
    processes(scope.stateDirectory),
    cgroups(basename(scope.stateDirectory)),
    mounts(scope.stateDirectory),
    left(join(scope.stateDirectory, 'b'), 'directory'),
    scope.dataDirectory ? left(join(scope.dataDirectory, 'disks'), 'files on the disk') : [],
  ])
  return found.flat()
}

/** Throws with all that was left. To be called after each test file that starts sandboxes. */
export async function expectNoLeaks(scope: LeakScope): Promise<void> {
  const leaks = await findLeaks(scope)
  if (leaks.length > 0) throw new Error(`left behind:\n${leaks.join('\n')}`)
}

async function processes(stateDirectory: string): Promise<readonly string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const found = await Promise.all(
    pids.map(async (pid) => {
      const command = (await textOf(`/proc/${pid}/cmdline`)).replaceAll('\0', ' ').trim()
      const ours = command.includes(`${stateDirectory}/`) && command.includes('runsc')
      const helper = command.includes('sandlot-helper') && (await parentOf(pid)) === process.pid
      return ours || helper ? `process ${pid}: ${command.slice(0, 200)}` : undefined
    }),
  )
  return found.filter((line) => line !== undefined)
}

async function parentOf(pid: string): Promise<number> {
  const stat = await textOf(`/proc/${pid}/stat`)
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
}

async function cgroups(parent: string): Promise<readonly string[]> {
  const root = '/sys/fs/cgroup'
  const controllers = [root, ...(await namesIn(root)).map((name) => join(root, name))]
  const parents = controllers.map((directory) => join(directory, parent))
  const leaves = await Promise.all(
    parents.map(async (directory) => {
      const entries = await readdir(directory, { withFileTypes: true }).catch(() => [])
      return entries.flatMap((entry) => (entry.isDirectory() ? [join(directory, entry.name)] : []))
    }),
  )
  return leaves.flat().map((leaf) => `cgroup ${leaf}`)
}

async function mounts(stateDirectory: string): Promise<readonly string[]> {
  const lines = (await textOf('/proc/self/mountinfo')).split('\n')
  return lines.filter((line) => line.includes(stateDirectory)).map((line) => `mount ${line}`)
}

async function left(directory: string, what: string): Promise<readonly string[]> {
  return (await namesIn(directory)).map((name) => `${what} ${join(directory, name)}`)
}

async function namesIn(directory: string): Promise<readonly string[]> {
  return readdir(directory).catch(() => [])
}

async function textOf(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '')
}
