import { Agent, request } from 'node:http'
import type { BenchDaemon } from './daemon.ts'

/** Plain HTTP over kept connections, with as little of a client in it as possible. */
export class Api implements Disposable {
  readonly #agent: Agent
  readonly #url: string
  readonly #headers: Record<string, string>

  constructor({ url, apiKey }: BenchDaemon, { connections = 1 } = {}) {
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections })
    this.#url = url
    this.#headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' }
  }

  /** The answer's JSON; throws for a status of 400 or more. */
  async json<T>(method: string, path: string, body?: unknown): Promise<T> {
    return JSON.parse(await this.#text(method, path, body)) as T
  }

  /** A gauge of `/metrics`, by its name with labels. */
  async gauge(name: string): Promise<number> {
    const lines = (await this.#text('GET', '/metrics')).split('\n')
    const line = lines.find((each) => each.startsWith(`${name} `))
    if (!line) throw new Error(`the daemon has no gauge ${name}`)
    return Number(line.slice(name.length))
  }

  [Symbol.dispose](): void {
    this.#agent.destroy()
  }

  #text(method: string, path: string, body?: unknown): Promise<string> {
    const text = body === undefined ? '' : JSON.stringify(body)
    const headers = { ...this.#headers, 'content-length': String(Buffer.byteLength(text)) }
    return new Promise((resolve, reject) => {
      const sent = request(this.#url + path, { method, headers, agent: this.#agent }, (answer) => {
        const chunks: Buffer[] = []
        answer.on('data', (chunk) => chunks.push(chunk))
        answer.on('error', reject)
        answer.on('end', () => {
          const said = Buffer.concat(chunks).toString()
          if ((answer.statusCode ?? 500) < 400) resolve(said)
          else reject(new Error(`${method} ${path}: ${answer.statusCode} ${said.slice(0, 300)}`))
        })
      })
      sent.on('error', reject)
      sent.end(text)
    })
  }
}
