/** Sandboxes of a gVisor daemon, as its machine sees them. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { childrenOf, commandOf } from '../processes.ts'

interface State {
  readonly hostId: string
  readonly sentryPid: number
  readonly owner?: { readonly spec: { readonly id: string; readonly hostname: string } }
}

/** Ends one behind the daemon's back, as a crash of gVisor does. */
export async function killSandbox(runDirectory: string, id: string): Promise<void> {
  end((await states(runDirectory)).find(({ owner }) => owner?.spec.id === id))
}

/** As containers of functions are called. */
const CONTAINER = 'function'

/** Ends a container of a function; says whether there was one. */
export async function killAnyContainer(runDirectory: string): Promise<boolean> {
  const all = await states(runDirectory)
  return end(all.find(({ owner }) => owner?.spec.hostname === CONTAINER))
}

/** Ends one that is an episode's; says which. */
export async function killAnySandbox(
  runDirectory: string,
  random: () => number,
): Promise<string | undefined> {
  const owned = (await states(runDirectory)).filter(
    ({ owner }) => owner && owner.spec.hostname !== CONTAINER,
  )
  const chosen = owned[Math.floor(random() * owned.length)]
  return end(chosen) ? chosen?.owner?.spec.id : undefined
}

/** Ends the host helper of a daemon; says whether there was one. */
export function killHelperOf(daemonPid: number): boolean {
  const helpers = childrenOf(daemonPid).filter((pid) => commandOf(pid).includes('sandlot-helper'))
  for (const pid of helpers) process.kill(pid, 'SIGKILL')
  return helpers.length > 0
}

/** Ends a process of a daemon that runs a function; says whether there was one. */
export function killFunctionOf(daemonPid: number, program: string): boolean {
  const [pid] = childrenOf(daemonPid).filter((each) => commandOf(each).includes(program))
  if (pid !== undefined) process.kill(pid, 'SIGKILL')
  return pid !== undefined
}

function end(state: State | undefined): boolean {
  // Its number may be another's by now.
  if (!state || !commandOf(state.sentryPid).includes(state.hostId)) return false
  process.kill(state.sentryPid, 'SIGKILL')
  return true
}

async function states(runDirectory: string): Promise<readonly State[]> {
  const names = (await readdir(runDirectory)).filter((name) => name.startsWith('sandlot-'))
  const found = await Promise.all(
    names.map(async (name) => {
      const directory = join(runDirectory, name, 'b')
      const ids = await readdir(directory).catch(() => [])
      const texts = ids.map((id) =>
        readFile(join(directory, id, 'state.json'), 'utf8').catch(() => ''),
      )
      return (await Promise.all(texts)).flatMap(stateOf)
    }),
  )
  return found.flat()
}

/** None of one that is being written. */
function stateOf(text: string): State[] {
  try {
    return [JSON.parse(text)]
  } catch {
    return []
  }
}
