import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const PROGRAM = fileURLToPath(new URL('./plain-process.ts', import.meta.url))

/** Processes of this machine that do what containers do, without any walls: one answer for each line, in order. */
export class PlainWorkers implements AsyncDisposable {
  readonly #workers: readonly Worker[]

  constructor(count: number) {
    this.#workers = Array.from({ length: count }, () => new Worker())
  }

  /** Resolves when each of them has answered once. */
  async warm(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.ask(1)))
  }

  async ask(index: number, input: number): Promise<number> {
    return await (this.#workers[index % this.#workers.length] as Worker).ask(input)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.end()))
  }
}

class Worker {
  readonly #child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', PROGRAM], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  readonly #waiting: ((answer: number) => void)[] = []

  constructor() {
    const lines = createInterface({ input: this.#child.stdout })
    lines.on('line', (line) => this.#waiting.shift()?.(Number(line)))
  }

  ask(input: number): Promise<number> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
      this.#child.stdin.write(`${input}\n`)
    })
  }

  async end(): Promise<void> {
    const gone = once(this.#child, 'exit')
    this.#child.stdin.end()
    await gone
  }
}
