/** `sandlot serve` as a process of its own, on directories and a port of its own, with real gVisor. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Image } from '@sandlot/runtime'
import { bareImage, findLeaks, linkTestImages, ownPort, pythonImage } from '@sandlot/testkit'
import { Sandlot } from 'sandlot'
import { onMachine } from './internet/internet.ts'
import { limitGroup } from './machine-memory.ts'
import { childrenOf, commandOf, memoryOf } from './processes.ts'

export interface RealDaemonOptions {
  /** Blanks that wait. Default 2. */
  readonly pool?: number
  /** All that wait. Default: those blanks alone, so that what lives can be counted. */
  readonly poolMax?: number
  readonly environment?: Record<string, string>
  /** The network that it lives in. Default: this machine's. */
  readonly networkNamespace?: string
  /** The data directory is a file system of this size. */
  readonly dataBytes?: number
  /** Its image store is in its data directory and begins with these. Default: beside it, with Debian bare and with Python. */
  readonly images?: readonly Image[]
}

const commandLine = fileURLToPath(new URL('../../packages/cli/src/main.ts', import.meta.url))
const STOP_MS = 60_000
const execute = promisify(execFile)
const LOG_LINES_KEPT = 200

export class RealDaemon {
  /** What must survive, what lives with the machine, and the log's last lines. */
  readonly dataDirectory: string
  readonly runDirectory: string
  readonly log: string[] = []
  url = ''
  apiKey = ''
  readonly #directory: string
  readonly #options: RealDaemonOptions
  readonly #clients: Sandlot[] = []
  /** Host helpers of all daemons that there were: they are to end with them. */
  readonly #helpers = new Set<number>()
  #child: ChildProcess | undefined

  private constructor(
    directory: string,
    options: RealDaemonOptions,
    dataDirectory = join(directory, 'data'),
  ) {
    this.#directory = directory
    this.#options = options
    this.dataDirectory = dataDirectory
    this.runDirectory = `/run/sandlot-e2e-${randomBytes(3).toString('hex')}`
  }

  static async start(options: RealDaemonOptions = {}): Promise<RealDaemon> {
    const daemon = new RealDaemon(await mkdtemp('/var/tmp/sandlot-e2e-'), options)
    await mkdir(daemon.dataDirectory, { mode: 0o700 })
    const { dataBytes } = options
    if (dataBytes !== undefined) {
      const argv = [
        '-t',
        'tmpfs',
        '-o',
        `size=${dataBytes},mode=700`,
        'tmpfs',
        daemon.dataDirectory,
      ]
      await execute('mount', argv)
    }
    try {
      await daemon.#bringImages()
      await daemon.start()
    } catch (error) {
      await daemon.#removeDirectories()
      throw error
    }
    return daemon
  }

  /** Over a data directory that is there already, and stays. */
  static async over(dataDirectory: string): Promise<RealDaemon> {
    const directory = await mkdtemp('/var/tmp/sandlot-e2e-')
    const daemon = new RealDaemon(directory, { pool: 0 }, dataDirectory)
    await daemon.start()
    return daemon
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #bringImages(): Promise<void> {
    const place = join(this.dataDirectory, 'images')
    const { images } = this.#options
    if (images !== undefined) return await linkTestImages(images, place)
    const beside = join(this.#directory, 'images')
    await linkTestImages(await Promise.all([bareImage(), pythonImage()]), beside)
    await symlink(beside, place)
  }

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  /** What the command line and the SDK of another process need to find this daemon. */
  get environment(): Record<string, string> {
    return { SANDLOT_URL: this.url, SANDLOT_API_KEY: this.apiKey }
  }

  /** A new client; closed with the daemon. */
  client(): Sandlot {
    const client = new Sandlot({ url: this.url, apiKey: this.apiKey })
    this.#clients.push(client)
    return client
  }

  /** Starts it, or starts it again on the same directories and the same port. */
  async start(): Promise<void> {
    const port = this.url === '' ? String(await ownPort()) : new URL(this.url).port
    const { pool = 2, poolMax = pool, environment, networkNamespace } = this.#options
    const argv = [
      ...[
        process.execPath,
        '--disable-warning=ExperimentalWarning',
        commandLine,
        'serve',
        '--attached',
      ],
      ...['--port', port, '--pool', String(pool)],
      ...['--data-directory', this.dataDirectory, '--run-directory', this.runDirectory],
    ]
    const [program = '', ...args] =
      networkNamespace === undefined ? argv : onMachine(networkNamespace, argv)
    const child = spawn(program, args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, SANDLOT_POOL_MAX: String(poolMax), ...environment },
    })
    this.#child = child
    createInterface({ input: child.stderr }).on('line', (line) => {
      this.log.push(line)
      if (this.log.length > LOG_LINES_KEPT) this.log.shift()
    })
    const ended = once(child, 'exit')
    const [said] = await Promise.race([once(createInterface(child.stdout), 'line'), ended])
    if (typeof said !== 'string') throw new Error(`no daemon:\n${this.log.join('\n')}`)
    const { url, apiKey } = JSON.parse(said)
    this.url = url
    this.apiKey = apiKey
  }

  memory(): ReturnType<typeof memoryOf> {
    return memoryOf(this.pid)
  }

  /** Ends one sandbox behind the daemon's back. */
  async killSandbox(id: string): Promise<void> {
    const state = (await this.#states()).find(({ owner }) => owner?.spec.id === id)
    if (!state) throw new Error(`there is no sandbox ${id} on this machine`)
    process.kill(state.sentryPid, 'SIGKILL')
  }

  /** Sandboxes that live on this machine, blanks included, whether or not the daemon knows them. */
  async hostIds(): Promise<readonly string[]> {
    return (await this.#states()).map(({ hostId }) => hostId)
  }

  /** Host ids of those that are somebody's. */
  async ownedIds(): Promise<readonly string[]> {
    return (await this.#states()).filter(({ owner }) => owner).map(({ hostId }) => hostId)
  }

  /** Host ids of those of which a process lives. */
  async livingOn(): Promise<readonly string[]> {
    return (await this.#states()).filter(isAlive).map(({ hostId }) => hostId)
  }

  /** All its sandboxes together have so much memory; undefined: as much as the machine. There was one before. */
  async limitMachine(bytes: number | undefined): Promise<void> {
    for (const directory of await this.#stateDirectories()) {
      await limitGroup(basename(directory), bytes)
    }
  }

  async livesOn(id: string): Promise<boolean> {
    return (await this.#states()).some((state) => state.owner?.spec.id === id && isAlive(state))
  }

  /** As a crash does: its sandboxes live on. */
  async kill(): Promise<void> {
    await this.#end((child) => child.kill('SIGKILL'))
  }

  /** Stops it with all its sandboxes. */
  async stop(): Promise<void> {
    await this.#end((child) => child.stdin?.end())
  }

  /** Stops it, removes its directories, and throws with all that was left on the machine, or with why it died. */
  async close(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.close()))
    const died = this.#isOver
    await this.stop()
    const left = [...(await this.leaks())]
    if (died) {
      left.unshift('a daemon that had ended by itself, with these last words:', ...this.log)
      // The next one takes away what it left.
      await this.start().catch(() => {})
      await this.stop()
    }
    await this.#removeDirectories()
    if (left.length > 0) throw new Error(`left behind:\n${left.join('\n')}`)
  }

  async #removeDirectories(): Promise<void> {
    if (this.#options.dataBytes !== undefined) await execute('umount', [this.dataDirectory])
    await rm(this.#directory, { recursive: true, force: true })
    await rm(this.runDirectory, { recursive: true, force: true })
  }

  /** What a daemon that is over left: processes, cgroups, mounts, FIFOs, temporary files. One line each. */
  async leaks(): Promise<readonly string[]> {
    const dataDirectory = join(this.dataDirectory, 'runtime')
    const ofDrivers = await Promise.all(
      (await this.#stateDirectories()).map((stateDirectory) =>
        findLeaks({ stateDirectory, dataDirectory }),
      ),
    )
    const helpers = [...this.#helpers].filter((pid) => commandOf(pid).includes('sandlot-helper'))
    const files = await readdir(this.dataDirectory, { recursive: true })
    // A listing does not follow the link that leads to images beside.
    const ofBuilds = await readdir(join(this.dataDirectory, 'images', 'tmp'))
    const temporary = [...files, ...ofBuilds.map((name) => `images/tmp/${name}`)].filter((name) =>
      /\.(part|next)$|(^|\/)(tmp|incoming)\/./.test(name),
    )
    const announced = (await readdir(this.runDirectory)).filter((name) => name === 'daemon.json')
    return [
      ...ofDrivers.flat(),
      ...helpers.map((pid) => `process ${pid}: ${commandOf(pid)}`),
      ...[...temporary, ...announced].map((name) => `file ${name}`),
    ]
  }

  async #states(): Promise<readonly FoundState[]> {
    const found = await Promise.all(
      (await this.#stateDirectories()).map(async (directory) => {
        const names = await readdir(join(directory, 'b')).catch(() => [])
        const texts = names.map((name) =>
          readFile(join(directory, 'b', name, 'state.json'), 'utf8').catch(() => ''),
        )
        return (await Promise.all(texts)).filter((text) => text !== '')
      }),
    )
    return found.flat().map((text) => JSON.parse(text) as FoundState)
  }

  async #stateDirectories(): Promise<readonly string[]> {
    const names = await readdir(this.runDirectory).catch(() => [])
    const states = names.filter((name) => name.startsWith('sandlot-'))
    return states.map((name) => join(this.runDirectory, name))
  }

  get #isOver(): boolean {
    return !this.#child || this.#child.exitCode !== null || this.#child.signalCode !== null
  }

  async #end(ask: (child: ChildProcess) => void): Promise<void> {
    const child = this.#child
    if (!child || this.#isOver) return
    for (const pid of childrenOf(this.pid)) this.#helpers.add(pid)
    const gone = once(child, 'exit')
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
    ask(child)
    await gone
    clearTimeout(timer)
  }
}

/** A process that is dead and not reaped has no command any more. */
function isAlive({ hostId, sentryPid }: FoundState): boolean {
  return commandOf(sentryPid).includes(hostId)
}

interface FoundState {
  readonly hostId: string
  readonly sentryPid: number
  readonly owner?: { readonly spec: { readonly id: string } }
}
