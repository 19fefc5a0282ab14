import { access, constants, mkdir, rmdir } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Cgroups } from '../cgroup/cgroups.ts'
import { detectCgroups } from '../cgroup/detect.ts'
import { DriverError } from '../driver.ts'
import { AGENT_MEND, describeOld, fileRevision, GUEST_REVISION } from '../guest/revision.ts'
import { acquireFileLock } from '../image/file-lock.ts'
import { RUNTIME_LIMITS } from '../limits.ts'
import { networkTag } from '../network/open/names.ts'
import { OpenNetworks } from '../network/open/open-network.ts'
import { Semaphore } from '../semaphore.ts'
import { agentImage } from './agent-image.ts'
import { HostHelper } from './helper.ts'
import type { Instance } from './instance.ts'
import type { GvisorOptions } from './options.ts'
import {
  emptyDirectory,
  newHostId,
  sandboxesDirectory,
  sandboxPaths,
  sharedRoot,
  stateLock,
} from './paths.ts'
import { type RuntimeFacts, runtimeFacts } from './runtime-facts.ts'

/** What all sandboxes of one driver share. */
export class GvisorContext {
  readonly options: GvisorOptions
  readonly helper: HostHelper
  readonly cgroups: Cgroups
  readonly starts: Semaphore
  readonly openNetworks: OpenNetworks
  /** Everything started or recovered and not yet gone. */
  readonly instances = new Map<string, Instance>()
  #ready: Promise<{ agentImage: string }> | undefined
  #facts: Promise<RuntimeFacts> | undefined
  #lock: Disposable | undefined

  constructor(options: GvisorOptions) {
    checkSocketPath(options.stateDirectory)
    const cgroups = detectCgroups(basename(options.stateDirectory))
    if (!cgroups) {
      throw new DriverError('unsupported', 'this machine has no usable cgroups', {
        hint: 'mount cgroup2 with the controllers memory, cpu and pids at /sys/fs/cgroup',
      })
    }
    this.options = options
    this.cgroups = cgroups
    this.helper = new HostHelper(options.helper)
    this.starts = new Semaphore(options.startsAtOnce)
    this.openNetworks = new OpenNetworks(networkTag(options.stateDirectory), options.openNetwork)
  }

  /** A directory in which there is nothing; bundles name one as their root. */
  get emptyDirectory(): string {
    return emptyDirectory(this.options.stateDirectory)
  }

  /** Directories, cgroups and the agent's image; done once, tried again after a failure. */
  ready(): Promise<{ agentImage: string }> {
    this.#ready ??= this.#prepare().catch((error) => {
      this.#ready = undefined
      throw error
    })
    return this.#ready
  }

  /** What checkpoints depend on; asked once, again after a failure. */
  runtimeFacts(): Promise<RuntimeFacts> {
    this.#facts ??= this.ready()
      .then(({ agentImage }) => runtimeFacts(this.options.runsc, agentImage))
      .catch((error) => {
        this.#facts = undefined
        throw error
      })
    return this.#facts
  }

  async dispose(): Promise<void> {
    await this.helper.close()
    await this.openNetworks.dispose().catch(() => {})
    await this.cgroups.dispose()
    const { stateDirectory } = this.options
    const shared = [sandboxesDirectory, sharedRoot].map((path) => path(stateDirectory))
    for (const directory of [...shared, this.emptyDirectory]) {
      await rmdir(directory).catch(() => {})
    }
    this.#lock?.[Symbol.dispose]()
  }

  async #prepare(): Promise<{ agentImage: string }> {
    const { stateDirectory, agent, helper } = this.options
    await checkAgent(agent)
    await checkHelper(helper)
    const directories = [sandboxesDirectory(stateDirectory), sharedRoot(stateDirectory)]
    for (const directory of [...directories, this.emptyDirectory]) {
      await mkdir(directory, { recursive: true, mode: 0o700 })
    }
    this.#lock ??= await lock(stateDirectory)
    await this.cgroups.prepare().catch((cause) => {
      throw new DriverError('unsupported', `cgroups can't be made here: ${cause.message}`, {
        hint: 'run the daemon as root, and in a container give it a cgroup of its own to write to',
        cause,
      })
    })
    return { agentImage: await agentImage(this.options) }
  }
}

/** Before any sandbox is started: with an older agent the first request that it doesn't know would fail, whenever that comes. */
async function checkAgent(path: string): Promise<void> {
  const revision = await fileRevision(path).catch((cause) => {
    const message = `the guest agent can't be read: ${cause.message}`
    throw new DriverError('unsupported', message, { hint: AGENT_MEND, cause })
  })
  if (revision >= GUEST_REVISION) return
  throw new DriverError('unsupported', `the guest agent ${describeOld(path, revision)}`, {
    hint: AGENT_MEND,
  })
}

/** Likewise: without it each start would fail by itself. */
async function checkHelper(path: string): Promise<void> {
  try {
    await access(path, constants.X_OK)
  } catch (cause) {
    const message = `the host helper can't be run: ${(cause as Error).message}`
    throw new DriverError('unsupported', message, { hint: AGENT_MEND, cause })
  }
}

/** Two daemons over one directory would end one another's sandboxes. One that is just ending, or being tidied, is waited for. */
async function lock(stateDirectory: string): Promise<Disposable> {
  const late = AbortSignal.timeout(RUNTIME_LIMITS.lockMs)
  try {
    return await acquireFileLock(stateLock(stateDirectory), late)
  } catch (cause) {
    if (!late.aborted) throw cause
    throw new DriverError('unsupported', `another daemon uses ${stateDirectory}`, {
      hint: 'stop it, or give this one another SANDLOT_RUN_DIRECTORY',
      cause,
    })
  }
}

function checkSocketPath(stateDirectory: string): void {
  const { controlSocket } = sandboxPaths(stateDirectory, newHostId())
  if (Buffer.byteLength(controlSocket) <= RUNTIME_LIMITS.socketPathBytesMax) return
  throw new DriverError('unsupported', `the state directory ${stateDirectory} is too long a path`, {
    hint: `a control socket's path has at most ${RUNTIME_LIMITS.socketPathBytesMax} bytes; use /run/sandlot`,
  })
}
