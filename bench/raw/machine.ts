/** The raw runtime: a bundle, a cgroup leaf, `runsc create`, start, kill, and nothing else. */
import { randomInt } from 'node:crypto'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
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

const DEADLINE_MS = 20_000
const PIPE_BYTES = 2 ** 20

/** What a raw sandbox runs: one program of the image, or the agent. */
export type RawKind = 'plain' | 'agent'

export interface RawSandbox {
  readonly leaf: CgroupLeaf
  readonly pipes: RawPipes
  /** Ends it, and resolves when nothing of it is left on the machine. */
  end(): Promise<void>
}

export class RawMachine {
  readonly helper: RawHelper
  readonly #options: GvisorOptions
  readonly #directory: string
  readonly #cgroups: Cgroups
  readonly #agentImage: string

  private constructor(options: GvisorOptions, cgroups: Cgroups, agentImagePath: string) {
    this.#options = options
    this.#directory = options.stateDirectory
    this.#cgroups = cgroups
    this.#agentImage = agentImagePath
    this.helper = new RawHelper(options.helper)
  }

  static async open(context: BenchContext): Promise<RawMachine> {
    const options = gvisorOptions({
      stateDirectory: await stateDirectory(context),
      dataDirectory: join(cacheDirectory, 'bench-data'),
    })
    const cgroups = detectCgroups(basename(options.stateDirectory))
    if (!cgroups) throw new Error('this machine has no usable cgroups')
    await mkdir(join(options.stateDirectory, 'e'))
    await mkdir(join(options.stateDirectory, 's'))
    await cgroups.prepare()
    context.scope.defer(() => cgroups.dispose())
    const machine = new RawMachine(options, cgroups, await agentImage(options))
    context.scope.use(machine.helper)
    return machine
  }

  /** Starts a sandbox with the limits of `spec`; its program may not have said anything yet. */
  async start(kind: RawKind, spec: SandboxSpec): Promise<RawSandbox> {
    const id = Array.from({ length: 16 }, () => randomInt(36).toString(36)).join('')
    const directory = join(this.#directory, id)
    const paths = { in: join(directory, 'in'), out: join(directory, 'out') }
    const leaf = this.#cgroups.leaf(id)
    await mkdir(join(directory, 'r'), { recursive: true })
    await Promise.all([
      leaf.create(limitsOf(spec)),
      writeFile(join(directory, 'config.json'), JSON.stringify(this.#bundle(kind, spec))),
      this.helper.ask('fifos', paths),
    ])
    const pipes = openRawPipes(paths)
    const end = async (sentryPid: number) => {
      pipes[Symbol.dispose]()
      await leaf.kill(DEADLINE_MS)
      if (sentryPid > 0) await this.helper.ask('reap', { pid: sentryPid })
      await leaf.remove(DEADLINE_MS)
      await rm(directory, { recursive: true, force: true })
    }
    try {
      const sentryPid = await this.#launch(id, directory, { ...paths, leaf })
      return { leaf, pipes, end: () => end(sentryPid) }
    } catch (error) {
      await end(0)
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

  #bundle(kind: RawKind, { layers, limits }: SandboxSpec): object {
    const emptyRoot = join(this.#directory, 'e')
    if (kind === 'agent') return bundleConfig({ agentImage: this.#agentImage, layers, emptyRoot })
    const [layer] = layers
    if (!layer || layers.length > 1) throw new Error('the raw loop takes an image of one layer')
    return plainBundle({ layer, emptyRoot, diskBytes: limits.diskBytes })
  }

  async #launch(
    id: string,
    directory: string,
    ends: { readonly in: string; readonly out: string; readonly leaf: CgroupLeaf },
  ): Promise<number> {
    const root = join(directory, 'r')
    const pidFile = join(directory, 'pid')
    const log = join(directory, 'runsc.log')
    const request: LaunchRequest = {
      in: ends.in,
      out: ends.out,
      pipeBytes: PIPE_BYTES,
      stderr: join(directory, 'stderr.log'),
      log,
      cgroupProcs: ends.leaf.joinFiles,
      argv: [
        this.#options.runsc,
        `--root=${root}`,
        `--shared-root=${join(this.#directory, 's')}`,
        `--log=${log}`,
        '--log-format=json',
        ...FLAGS,
        ...(this.#options.systrap.fastPath ? [] : ['--systrap-disable-fast-path']),
        ...['create', '--bundle', directory, '--pid-file', pidFile, id],
      ],
      pidFile,
      controlSocket: join(root, `runsc-${id}.sock`),
      container: id,
      start: true,
      deadlineMs: DEADLINE_MS,
    }
    const launched = await this.helper.ask('launch', { ...request })
    return (launched as { sentryPid: number }).sentryPid
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
