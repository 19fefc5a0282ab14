import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { BenchContext } from '../bench.ts'
import { inherited } from '../config.ts'

const program = fileURLToPath(new URL('./worker.ts', import.meta.url))

/** A client that works on the run, to be killed at any time; it goes on when it is started again. */
export class ClientProcess implements AsyncDisposable {
  readonly #context: BenchContext
  readonly #given: string
  #child: ChildProcess | undefined
  #isEnding = false

  constructor(context: BenchContext, given: object, mark: string) {
    this.#context = context
    this.#given = `${JSON.stringify(given)}\n`
    this.#start(mark)
  }

  async restart(mark: string): Promise<void> {
    await this.#end()
    this.#start(mark)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end()
  }

  #start(mark: string): void {
    this.#isEnding = false
    const child = spawn(process.execPath, ['--no-warnings', program], {
      stdio: ['pipe', 'inherit', 'inherit'],
      env: { ...inherited, SANDLOT_BENCH_MARK: mark },
    })
    child.stdin?.on('error', () => {})
    child.stdin?.write(this.#given)
    child.once('exit', (code, signal) => {
      if (this.#isEnding || code === 0) return
      this.#context.fail(new Error(`a client ended by itself with ${signal ?? code}`))
    })
    this.#child = child
  }

  async #end(): Promise<void> {
    this.#isEnding = true
    const child = this.#child
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }
}
