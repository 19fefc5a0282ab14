import { join } from 'node:path'
import { DriverError } from '../driver-error.ts'
import type { ControlFiles } from './files.ts'
import { codeOf } from './io.ts'

const CONTROLLERS = '+memory +cpu +pids'
/** Where processes go that stand in the way. No name of a driver's own. */
const ASIDE = 'init'
/** They may fork meanwhile. */
const ROUNDS = 10

/**
 * Hands the controllers of a group on to those below it. Only the machine's root may do so with processes of its own: in a container the
 * root that is seen is a group like others, with the container's processes in it, this daemon's too. Those are moved into a group beside ours,
 * where all limits of the container hold for them as before.
 */
export async function handOn(files: ControlFiles, directory: string): Promise<void> {
  const control = join(directory, 'cgroup.subtree_control')
  for (let round = 0; ; round++) {
    try {
      return files.write(control, CONTROLLERS)
    } catch (error) {
      if (codeOf(error) !== 'EBUSY' || round === ROUNDS) throw refused(control, error)
      await moveAside(files, directory)
    }
  }
}

async function moveAside(files: ControlFiles, directory: string): Promise<void> {
  const aside = join(directory, ASIDE)
  await files.makeUnlessThere(aside)
  for (const pid of files.pids(join(directory, 'cgroup.procs'))) {
    // 0 stands for a process outside of this daemon's pid namespace.
    if (pid > 0) move(files, join(aside, 'cgroup.procs'), pid)
  }
}

/** It may have ended meanwhile. */
function move(files: ControlFiles, to: string, pid: number): void {
  try {
    files.write(to, pid)
  } catch (error) {
    if (codeOf(error) !== 'ESRCH') throw error
  }
}

function refused(control: string, cause: unknown): DriverError {
  return new DriverError('unsupported', `${control}: ${codeOf(cause)} for ${CONTROLLERS}`, {
    hint: 'give this daemon a cgroup2 of its own with the controllers memory, cpu and pids (in a container: --privileged --cgroupns=private)',
    cause,
  })
}
