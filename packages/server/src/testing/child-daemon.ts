import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { TestDirectories } from './daemon.ts'

/** A daemon with the driver in memory, in a process of its own. */
export class ChildDaemon implements AsyncDisposable {
  readonly url: string
  readonly apiKey: string
  readonly #child: ChildProcess
  readonly #log: Buffer[] = []

  private constructor(child: ChildProcess, said: { url: string; apiKey: string }) {
    this.#child = child
    this.url = said.url
    this.apiKey = said.apiKey
    child.stderr?.on('data', (chunk) => this.#log.push(chunk))
  }

  /** `keepsLog`: all that it logs is kept for `log`, at the level debug. */
  static async start(
    directories: TestDirectories,
    { keepsLog = false }: { readonly keepsLog?: boolean } = {},
  ): Promise<ChildDaemon> {
    const { dataDirectory, runDirectory } = directories
    const logLevel = keepsLog ? 'debug' : 'error'
    const options = { port: 0, dataDirectory, runDirectory, driver: 'fake', logLevel }
    const script = fileURLToPath(new URL('./serve.ts', import.meta.url))
    const child = spawn(process.execPath, [script, JSON.stringify(options)], {
      stdio: ['ignore', 'pipe', keepsLog ? 'pipe' : 'inherit'],
    })
    const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })
    for await (const line of lines) return new ChildDaemon(child, JSON.parse(line))
    throw new Error(`the daemon ended with ${child.exitCode}`)
  }

  get log(): string {
    return Buffer.concat(this.#log).toString()
  }

  fetch(method: string, path: string, init: RequestInit = {}): Promise<Response> {
    const headers = { authorization: `Bearer ${this.apiKey}`, 'content-type': 'application/json' }
    return fetch(this.url + path, { method, headers, duplex: 'half', ...init } as RequestInit)
  }

  async json(method: string, path: string, body?: unknown) {
    const init = body === undefined ? {} : { body: JSON.stringify(body) }
    const response = await this.fetch(method, path, init)
    return { status: response.status, json: (await response.json()) as never }
  }

  /** Resident memory now, and the most there ever was. */
  async memoryBytes(): Promise<{ readonly now: number; readonly peak: number }> {
    const status = await readFile(`/proc/${this.#child.pid}/status`, 'utf8')
    const of = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]) * 1024
    return { now: of('VmRSS'), peak: of('VmHWM') }
  }

  /** As a crash does. */
  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const gone = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await gone
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
  }
}
