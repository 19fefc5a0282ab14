/** Brings everything that a daemon on this machine needs, beyond Node.js and the npm packages. */
import { getuid } from 'node:process'
import { Failure } from '../failure.ts'
import { ensureNative, type NativeBinaries } from './native.ts'
import { ensurePackages } from './packages.ts'
import { ensureRunsc } from './runsc.ts'

export interface Machine extends NativeBinaries {
  readonly runsc: string
}

/** Paths of the agent, the helper and runsc. `report` gets a line for each thing that has to be brought. */
export async function ensureMachine(report: (line: string) => void): Promise<Machine> {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new Failure(
      `the daemon needs Linux on x86_64, this is ${process.platform} on ${process.arch}`,
      'run the daemon on such a machine and set SANDLOT_URL and SANDLOT_API_KEY here',
    )
  }
  if (getuid?.() !== 0) {
    throw new Failure(
      'the daemon needs root: it makes sandboxes, cgroups and mounts',
      'run it again with sudo',
    )
  }
  await ensurePackages(report)
  const [binaries, runsc] = await Promise.all([ensureNative(report), ensureRunsc(report)])
  return { ...binaries, runsc }
}
