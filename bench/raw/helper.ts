import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

type Reply = {
  readonly id: number
  readonly ok?: unknown
  readonly error?: { message: string; log?: string }
}

/**
 * The host helper, spoken to directly: it forks into a cgroup and execs runsc, which costs less than a shell or a child
 * process of Node.js, so the raw loop is as fast as one can make it.
 */
export class RawHelper implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, (reply: Reply) => void>()
  #lastId = 0

  constructor(program: string) {
    this.#child = spawn(program, [], { stdio: ['pipe', 'pipe', 'inherit'] })
    const lines = createInterface({ input: this.#child.stdout as NodeJS.ReadableStream })
    lines.on('line', (line) => {
      const reply = JSON.parse(line) as Reply
      this.#waiting.get(reply.id)?.(reply)
      this.#waiting.delete(reply.id)
    })
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  async ask(op: string, fields: Readonly<Record<string, unknown>>): Promise<unknown> {
    const id = ++this.#lastId
    const replied = new Promise<Reply>((resolve) => this.#waiting.set(id, resolve))
    this.#child.stdin?.write(`${JSON.stringify({ id, op, ...fields })}\n`)
    const { ok, error } = await replied
    if (error) throw new Error(`${op}: ${error.message} ${error.log?.trim() ?? ''}`.trim())
    return ok
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#child, 'exit')
    this.#child.stdin?.end()
    await ended
  }
}
