/** HTTP of this machine without anything between, which what passes a sandbox is held against. */
import { once } from 'node:events'
import { type Agent, createServer, type RequestListener, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { timed } from './interleave.ts'

const PART = Buffer.alloc(256 * 1024, 'x')

export interface PlainServer extends Disposable {
  /** Ends with a slash. */
  readonly url: string
  readonly port: number
}

/** On the loopback: `large` is answered with so many bytes, all else with two when its body has been read. */
export async function plainServer(largeBytes: number): Promise<PlainServer> {
  const listener: RequestListener = (incoming, outgoing) => {
    if (incoming.url === '/large') {
      outgoing.setHeader('content-length', largeBytes)
      let left = largeBytes
      const write = () => {
        while (left > 0) {
          const part = PART.subarray(0, left)
          left -= part.length
          if (!outgoing.write(part)) return void outgoing.once('drain', write)
        }
        outgoing.end()
      }
      return write()
    }
    incoming.resume().once('end', () => outgoing.end('ok'))
  }
  const server = createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { port, url: `http://127.0.0.1:${port}/`, [Symbol.dispose]: () => void server.close() }
}

/** Megabytes a second in which `work` moves so many bytes. */
export async function megabytesPerSecond(
  bytes: number,
  work: () => Promise<void>,
): Promise<number> {
  return bytes / 1_000_000 / ((await timed(work)) / 1_000)
}

/** One request, with a body of this size; the answer is read and thrown away. */
export function ask(agent: Agent, url: string, bodyBytes = 0): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = bodyBytes > 0 ? { 'content-length': bodyBytes } : {}
    const sent = request(url, { method: bodyBytes > 0 ? 'POST' : 'GET', agent, headers })
    sent.on('error', reject)
    sent.on('response', (answer) => {
      if (answer.statusCode !== 200) reject(new Error(`${url} answered ${answer.statusCode}`))
      answer.on('error', reject).on('end', () => resolve())
      answer.resume()
    })
    let left = bodyBytes
    const write = () => {
      while (left > 0) {
        const part = PART.subarray(0, left)
        left -= part.length
        if (!sent.write(part)) return void sent.once('drain', write)
      }
      sent.end()
    }
    write()
  })
}
