/** Brings everything that a daemon on this machine needs, beyond Node.js and the npm packages. */
import { getuid } from 'node:process'
import { place } from '../config.ts'
import { Failure } from '../failure.ts'
import { ensureNative, type NativeBinaries } from './native.ts'
import { DAEMON_NEEDS, ensurePackages, type Need } from './packages.ts'
import { ensureRunsc } from './runsc.ts'
import { type Step, signalOf } from './step.ts'
import { tryOnce } from './trial.ts'

export interface Machine extends NativeBinaries {
  readonly runsc: string
}

export interface MachineOptions extends Pick<Step, 'signal'> {
  /** Debian packages beyond the daemon's. */
  readonly needs?: readonly Need[]
  /** Goes on without those that can't be installed; says so. Images of Debian can't be built then. */
  readonly packagesMayMiss?: boolean
}

/** Paths of the agent, the helper and runsc. `report` gets a line for each thing that has to be brought. */
export async function ensureMachine(
  report: (line: string) => void,
  options: MachineOptions = {},
): Promise<Machine> {
  checkMachine()
  const step: Step = { report, ...signalOf(options) }
  const needs = [...DAEMON_NEEDS, ...(options.needs ?? [])]
  await ensurePackages({ ...step, needs }).catch((error) => {
    if (!(error instanceof Failure && options.packagesMayMiss)) throw error
    report(`${error.message} (${error.hint})`)
  })
  const building = ensureNative(step)
  const [binaries, runsc] = await Promise.all([
    building,
    ensureRunsc({ ...step, tryOut: async (path) => await tryOut(path, await building, options) }),
  ])
  return { ...binaries, runsc }
}

function checkMachine(): void {
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
}

async function tryOut(
  runsc: string,
  { agent, helper }: NativeBinaries,
  wait: Pick<Step, 'signal'>,
): Promise<void> {
  const { runDirectory } = place
  const start = async () => {
    const { tryMachine } = await import('@sandlot/server')
    const where = runDirectory === undefined ? {} : { runDirectory }
    await tryMachine({ gvisor: { runsc, agent, helper }, ...where, ...signalOf(wait) })
  }
  await tryOnce({ runsc, agent, helper, start })
}
