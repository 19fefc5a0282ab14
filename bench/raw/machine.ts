/** The raw runtime: a bundle, a cgroup leaf, `runsc create`, start, kill, and nothing else. */
import { execFile } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { type GvisorOptions, gvisorOptions, type SandboxSpec, sizesOf } from '@sandlot/runtime'
import type { BenchContext } from '../bench.ts'
import { cacheDirectory } from '../config.ts'
import {
  agentImage,
  bundleConfig,
  type CgroupLeaf,
  type Cgroups,
  detectCgroups,
  type LaunchRequest,
} from '../inside.ts'
import { stateDirectory } from '../temporary.ts'
import { plainBundle } from './bundle.ts'
import { RawHelper } from './helper.ts'
import { openRawPipes, type RawPipes } from './pipes.ts'

const execute = promisify(execFile)

const DEADLINE_MS = 20_000
const PIPE_BYTES = 2 ** 20

/** What a raw sandbox runs: one program of the image, or the agent. */
export type RawKind = 'plain' | 'agent'

export interface RawSandbox {
  readonly leaf: CgroupLeaf
  readonly pipes: RawPipes
  /** Saves its memory below this directory; it goes on. */
  checkpoint(directory: string): Promise<void>
  /** Ends it, and resolves when nothing of it is left on the machine. */
  end(): Promise<void>
}

export interface RawCheckpoint {
  readonly directory: string
  /** The image of what tells the saved sandbox from copies, where it had one. */
  readonly identity?: string
}

export class RawMachine {
  readonly helper: RawHelper
  readonly #options: GvisorOptions
  readonly #directory: string
  readonly #cgroups: Cgroups
  readonly #agentImage: string
  /** What ends those that nobody has ended yet. */
  readonly #ends = new Set<() => Promise<void>>()

  private constructor(options: GvisorOptions, cgroups: Cgroups, agentImagePath: string) {
    this.#options = options
    this.#directory = options.stateDirectory
    this.#cgroups = cgroups
    this.#agentImage = agentImagePath
    this.helper = new RawHelper(options.helper)
  }

  /** `dataDirectory`: of the driver whose checkpoints are to be restored. */
  static async open(
    context: BenchContext,
    dataDirectory = join(cacheDirectory, 'bench-data'),
  ): Promise<RawMachine> {
    const options = gvisorOptions({ stateDirectory: await stateDirectory(context), dataDirectory })
    const cgroups = detectCgroups(basename(options.stateDirectory))
    if (!cgroups) throw new Error('this machine has no usable cgroups')
    await mkdir(join(options.stateDirectory, 'e'))
    await mkdir(join(options.stateDirectory, 's'))
    await cgroups.prepare()
    context.scope.defer(() => cgroups.dispose())
    const machine = new RawMachine(options, cgroups, await agentImage(options))
    context.scope.use(machine.helper)
    context.scope.defer(() => machine.#endAll())
    return machine
  }

  /** Starts a sandbox with the limits of `spec`, or restores one; its program may not have said anything yet. */
  async start(kind: RawKind, spec: SandboxSpec, checkpoint?: RawCheckpoint): Promise<RawSandbox> {
    const id = Array.from({ length: 16 }, () => randomInt(36).toString(36)).join('')
    const directory = join(this.#directory, id)
    const paths = { in: join(directory, 'in'), out: join(directory, 'out') }
    const leaf = this.#cgroups.leaf(id)
    await mkdir(join(directory, 'r'), { recursive: true })
    await Promise.all([
      leaf.create(limitsOf(spec)),
      writeFile(
        join(directory, 'config.json'),
        JSON.stringify(this.#bundle(kind, spec, checkpoint)),
      ),
      this.helper.ask('fifos', paths),
    ])
    const pipes = openRawPipes(paths)
    let sentryPid = 0
    const end = async () => {
      if (!this.#ends.delete(end)) return
      pipes[Symbol.dispose]()
      await leaf.kill(DEADLINE_MS)
      if (sentryPid > 0) await this.helper.ask('reap', { pid: sentryPid })
      await leaf.remove(DEADLINE_MS)
      await rm(directory, { recursive: true, force: true })
    }
    this.#ends.add(end)
    try {
      sentryPid = await this.#launch(id, directory, { ...paths, leaf, checkpoint })
      return { leaf, pipes, end, checkpoint: (to) => this.#checkpoint(id, directory, to) }
    } catch (error) {
      await end()
      throw error
    }
  }

  /** Starts a plain sandbox and waits for its program's result. */
  async startToResult(spec: SandboxSpec): Promise<RawSandbox> {
    const sandbox = await this.start('plain', spec)
    const { output } = sandbox.pipes
    await new Promise<void>((resolve, reject) => {
      output.once('data', () => resolve())
      output.once('end', () => reject(new Error('the raw sandbox ended before its result')))
      output.resume()
    })
    return sandbox
  }

  /** A bench that broke off leaves nothing either. */
  async #endAll(): Promise<void> {
    await Promise.all([...this.#ends].map((end) => end()))
  }

  #bundle(kind: RawKind, { layers, limits }: SandboxSpec, checkpoint?: RawCheckpoint): object {
    const emptyRoot = join(this.#directory, 'e')
    const identity = checkpoint?.identity
    if (kind === 'agent') {
      return bundleConfig({ agentImage: this.#agentImage, layers, emptyRoot, identity })
    }
    const [layer] = layers
    if (!layer || layers.length > 1) throw new Error('the raw loop takes an image of one layer')
    return plainBundle({ layer, emptyRoot, diskBytes: limits.diskBytes })
  }

  async #launch(
    id: string,
    directory: string,
    how: {
      readonly in: string
      readonly out: string
      readonly leaf: CgroupLeaf
      readonly checkpoint: RawCheckpoint | undefined
    },
  ): Promise<number> {
    const root = join(directory, 'r')
    const pidFile = join(directory, 'pid')
    const { checkpoint } = how
    const verb = checkpoint
      ? ['restore', '--detach', '--image-path', checkpoint.directory]
      : ['create']
    const request: LaunchRequest = {
      in: how.in,
      out: how.out,
      pipeBytes: PIPE_BYTES,
      stderr: join(directory, 'stderr.log'),
      log: join(directory, 'runsc.log'),
      cgroupProcs: how.leaf.joinFiles,
      argv: [
        ...this.#runsc(directory),
        ...[...verb, '--bundle', directory, '--pid-file', pidFile, id],
      ],
      pidFile,
      controlSocket: join(root, `runsc-${id}.sock`),
      container: id,
      start: checkpoint === undefined,
      deadlineMs: DEADLINE_MS,
    }
    const launched = await this.helper.ask('launch', { ...request })
    return (launched as { sentryPid: number }).sentryPid
  }

  async #checkpoint(id: string, directory: string, to: string): Promise<void> {
    await mkdir(to, { recursive: true })
    const [runsc = '', ...flags] = this.#runsc(directory)
    const verb = ['checkpoint', `--image-path=${to}`, '--leave-running', id]
    await execute(runsc, [...flags, ...verb], { timeout: DEADLINE_MS })
  }

  /** The runtime with the flags of every call for one sandbox. */
  #runsc(directory: string): readonly string[] {
    return [
      this.#options.runsc,
      `--root=${join(directory, 'r')}`,
      `--shared-root=${join(this.#directory, 's')}`,
      `--log=${join(directory, 'runsc.log')}`,
      '--log-format=json',
      ...FLAGS,
      ...(this.#options.systrap.fastPath ? [] : ['--systrap-disable-fast-path']),
    ]
  }
}

const FLAGS = [
  '--platform=systrap',
  '--network=none',
  '--ignore-cgroups',
  '--host-settings=ignore',
  '--control-rpc-stop-timeout=0',
  '--in-sandbox-cgroup=v2',
  '--overlay2=none',
]

function limitsOf({ limits }: SandboxSpec) {
  return {
    memoryBytes: sizesOf(limits).cgroupMemoryBytes,
    cpus: limits.cpus,
    pidsMax: Math.max(1_024, 10 * limits.pidsMax),
  }
}
