import { access, constants, statfs } from 'node:fs/promises'
import { arch, availableParallelism, cpus, release, totalmem, type } from 'node:os'
import { RUNSC_VERSIONS } from '@sandlot/protocol'
import { detectCgroups } from '../cgroup/detect.ts'
import type { ProbeFinding } from '../driver.ts'
import { machineGpus } from '../gpu/machine-gpus.ts'
import { AGENT_MEND, describeOld, fileRevision, GUEST_REVISION } from '../guest/revision.ts'
import { probeOpenNetwork } from '../network/open/probe.ts'
import { run } from '../process/run.ts'
import { memoryKind } from './disk-files.ts'
import type { GvisorOptions } from './options.ts'

const KERNEL_MIN = [5, 6] as const
const DISK_BYTES_MIN = 5 * 2 ** 30
const MEMORY_BYTES_MIN = 2 * 2 ** 30
const PROGRAM_MS = 10_000

/** What this machine has of all that sandboxes need, each with the command that mends it. */
export async function probeMachine(
  options: GvisorOptions,
  signal: AbortSignal | undefined,
): Promise<readonly ProbeFinding[]> {
  return Promise.all([
    cores(),
    memory(),
    disk(options.dataDirectory),
    largeDisks(options.dataDirectory),
    kernel(),
    root(),
    cgroups(),
    runsc(options.runsc, signal),
    binary('host helper', options.helper),
    agent(options.agent),
    imageProgram('mmdebstrap', signal),
    imageProgram('skopeo', signal),
    gpus(options.gpus),
    probeOpenNetwork(options.openNetwork.addresses),
  ])
}

/** Nothing about them can be missing: what a bench or a report of trouble is read by. */
function cores(): ProbeFinding {
  const model = cpus()[0]?.model.replace(/\s+/g, ' ').trim() || 'model unknown'
  return finding('cores', true, `${availableParallelism()} (${arch()}, ${model})`, '')
}

function kernel(): ProbeFinding {
  const found = release()
  const [major = 0, minor = 0] = found.split('.').map((part) => Number.parseInt(part, 10))
  const [wantMajor, wantMinor] = KERNEL_MIN
  const ok = major > wantMajor || (major === wantMajor && minor >= wantMinor)
  const mend = `boot a kernel of ${KERNEL_MIN.join('.')} or newer`
  return finding('kernel', ok, `${type()} ${found}`, mend)
}

function root(): ProbeFinding {
  const uid = process.getuid?.() ?? -1
  return finding('root', uid === 0, `uid ${uid}`, 'start the daemon as root: sudo sandlot serve')
}

function cgroups(): ProbeFinding {
  const version = detectCgroups('sandlot')?.version
  const mend = 'mount -t cgroup2 none /sys/fs/cgroup   (controllers: memory, cpu, pids)'
  return finding('cgroups', version !== undefined, version ? `v${version}` : 'none usable', mend)
}

async function runsc(path: string, signal: AbortSignal | undefined): Promise<ProbeFinding> {
  const mend = `set SANDLOT_RUNSC to a runsc of version ${RUNSC_VERSIONS.join(' or ')}`
  const outcome = await run(path, ['--version'], withSignal(signal)).catch(() => undefined)
  const version = /version (\S+)/.exec(outcome?.stdout ?? '')?.[1]
  if (version === undefined) return finding('runsc', false, `${path} does not run`, mend)
  const known = RUNSC_VERSIONS.some((each) => each === version)
  return { ...finding('runsc', known, version, mend), required: false }
}

async function binary(name: string, path: string): Promise<ProbeFinding> {
  const ok = await access(path, constants.X_OK).then(
    () => true,
    () => false,
  )
  return finding(
    name,
    ok,
    ok ? path : `no program at ${path}`,
    'run ./sandlot setup: it builds them with cargo',
  )
}

async function agent(path: string): Promise<ProbeFinding> {
  const found = await binary('guest agent', path)
  if (!found.ok) return found
  const revision = await fileRevision(path).catch(() => 0)
  if (revision >= GUEST_REVISION) return found
  return finding('guest agent', false, describeOld(path, revision), AGENT_MEND)
}

/** Only sandboxes that ask for one need any. */
async function gpus(settings: GvisorOptions['gpus']): Promise<ProbeFinding> {
  const { devices, problems } = await machineGpus(settings)
  const has = devices.map(({ name, model }) => `${name} (${model})`).join(', ') || 'none'
  const found = [has, ...problems].join('; ')
  const mend = 'make the CDI file anew: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml'
  return { ...finding('GPUs', problems.length === 0, found, mend), required: false }
}

/** Only images of Debian, or of registries, need it. */
async function imageProgram(
  name: 'mmdebstrap' | 'skopeo',
  signal: AbortSignal | undefined,
): Promise<ProbeFinding> {
  const outcome = await run(name, ['--version'], withSignal(signal)).catch(() => undefined)
  const ok = outcome?.exitCode === 0
  const found = ok ? outcome.stdout.trim() : 'not found'
  return {
    ...finding(name, ok, found, `apt-get install ${name}`),
    required: false,
  }
}

async function disk(path: string): Promise<ProbeFinding> {
  const mend = `free some space, or set SANDLOT_DATA_DIRECTORY to a larger disk`
  const stats = await statfs(path).catch(() => statfs('/'))
  const free = stats.bavail * stats.bsize
  const all = stats.blocks * stats.bsize
  return finding(
    'disk',
    free >= DISK_BYTES_MIN,
    `${gib(free)} of ${gib(all)} free at ${path}`,
    mend,
  )
}

/** Only sandboxes whose files are larger than their memory need it. */
async function largeDisks(path: string): Promise<ProbeFinding> {
  const kind = await memoryKind(path).catch(() => memoryKind('/'))
  const found =
    kind === undefined ? `on the disk of ${path}` : `none: ${path} is in memory (${kind})`
  const mend = 'set SANDLOT_DATA_DIRECTORY to a directory on a disk'
  return { ...finding('large disks', kind === undefined, found, mend), required: false }
}

function memory(): ProbeFinding {
  const ok = totalmem() >= MEMORY_BYTES_MIN
  return finding(
    'memory',
    ok,
    `${gib(totalmem())}, ${gib(process.availableMemory())} of it free`,
    `use a machine with ${gib(MEMORY_BYTES_MIN)} or more`,
  )
}

function finding(name: string, ok: boolean, found: string, mend: string): ProbeFinding {
  return { name, ok, found, required: true, ...(ok ? {} : { mend }) }
}

function withSignal(signal: AbortSignal | undefined) {
  return { timeoutMs: PROGRAM_MS, ...(signal ? { signal } : {}) }
}

function gib(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`
}
