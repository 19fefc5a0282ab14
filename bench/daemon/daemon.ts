import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { GvisorDriver, gvisorOptions } from '@sandlot/runtime'
import type { DaemonInput } from '@sandlot/server'
import type { BenchContext } from '../bench.ts'
import { cacheDirectory, inherited } from '../config.ts'
import { shareImages } from '../image.ts'
import { stateDirectory, temporaryDirectory } from '../temporary.ts'

export interface DaemonSetting {
  readonly dataDirectory: string
  readonly runDirectory: string
  readonly options: DaemonInput
  /** Set in the environment of the daemon and of all it starts, so that what it leaves can be found. */
  readonly mark?: string
  /** What is run. Default: a daemon, and nothing besides. */
  readonly program?: string
}

const PLAIN = fileURLToPath(new URL('./child.ts', import.meta.url))
const STOP_MS = 30_000

/** Directories for a daemon, gone with the bench, with the bench's image in its store. */
export async function daemonSetting(
  context: BenchContext,
  options: DaemonInput,
): Promise<DaemonSetting> {
  const dataDirectory = join(await temporaryDirectory(context), 'data')
  await shareImages(dataDirectory)
  const runDirectory = await stateDirectory(context)
  context.scope.defer(() => endOrphans(runDirectory))
  return { dataDirectory, runDirectory, options }
}

/** Ends what a daemon left that died; one that was stopped left nothing. */
async function endOrphans(runDirectory: string): Promise<void> {
  const names = await readdir(runDirectory)
  for (const name of names.filter((each) => each.startsWith('sandlot-'))) {
    const dataDirectory = join(cacheDirectory, 'bench-data')
    const options = gvisorOptions({ stateDirectory: join(runDirectory, name), dataDirectory })
    await using driver = new GvisorDriver(options)
    await driver.recover()
  }
}

/** A daemon as its own process, so that its memory and its time are its own. */
export class BenchDaemon implements AsyncDisposable {
  readonly url: string
  readonly apiKey: string
  readonly #child: ChildProcess
  #ending = false

  private constructor(
    { fail }: BenchContext,
    child: ChildProcess,
    said: { url: string; apiKey: string },
  ) {
    this.#child = child
    this.url = said.url
    this.apiKey = said.apiKey
    child.once('exit', (code, signal) => {
      if (!this.#ending) fail(new Error(`the daemon ended by itself with ${signal ?? code}`))
    })
  }

  static async start(context: BenchContext, setting: DaemonSetting): Promise<BenchDaemon> {
    const { dataDirectory, runDirectory, options, mark = '', program = PLAIN } = setting
    const given = { port: 0, logLevel: 'warn', dataDirectory, runDirectory, ...options }
    const child = spawn(process.execPath, [program, JSON.stringify(given)], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...inherited, SANDLOT_BENCH_MARK: mark },
    })
    return await BenchDaemon.announced(context, child)
  }

  /** A child that says `{ url, apiKey }` on its first line and ends with its stdin. */
  static async announced(context: BenchContext, child: ChildProcess): Promise<BenchDaemon> {
    for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
      return new BenchDaemon(context, child, JSON.parse(line))
    }
    throw new Error(`the daemon ended with ${child.exitCode}`)
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** Resident memory now, and the most there was since `forgetPeak`. */
  memoryBytes(): { readonly now: number; readonly peak: number } {
    const status = readFileSync(`/proc/${this.pid}/status`, 'utf8')
    const of = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]) * 1024
    return { now: of('VmRSS'), peak: of('VmHWM') }
  }

  async forgetPeak(): Promise<void> {
    await writeFile(`/proc/${this.pid}/clear_refs`, '5')
  }

  /** As a crash does. */
  async kill(): Promise<void> {
    await this.#end(() => this.#child.kill('SIGKILL'))
  }

  /** Tells it to stop; kills it where that takes too long. */
  async [Symbol.asyncDispose](): Promise<void> {
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), STOP_MS)
    await this.#end(() => this.#child.stdin?.end())
    clearTimeout(timer)
  }

  async #end(ask: () => void): Promise<void> {
    this.#ending = true
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const gone = once(this.#child, 'exit')
    ask()
    await gone
  }
}
