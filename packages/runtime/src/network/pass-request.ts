import {
  type Agent,
  type IncomingMessage,
  request as openRequest,
  type ServerResponse,
} from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { headersOf } from './hop-headers.ts'

/** What is below is no end of a request. */
const STATUS_MIN = 200
/** A server may send it, but it can't be passed on. */
const NOT_IN_REASON = /[^ -~\x80-\xff]/g

export interface Onward {
  readonly path: string
  /** Names and values in turn, `Host` among them. */
  readonly headers: readonly string[]
  /** A connection for this request alone, or an agent that has one. */
  readonly outer?: Duplex
  readonly agent?: Agent
  /** What is done to the headers of the answer. */
  cover(headers: readonly string[]): string[]
}

/** Passes a request on, and the answer back as it comes. */
export function passRequest(
  request: IncomingMessage,
  response: ServerResponse,
  { path, headers, outer, agent, cover }: Onward,
): void {
  const onward = openRequest({
    ...(agent ? { agent } : { createConnection: () => outer as Socket }),
    method: request.method ?? 'GET',
    path,
    headers: [...headers],
    setHost: false,
  })
  onward.on('response', (answer) => {
    const { statusCode = 0, statusMessage = '' } = answer
    if (statusCode < STATUS_MIN) return void onward.destroy(new Error('an answer that is none'))
    const passed = cover(headersOf(answer, ['transfer-encoding']))
    response.writeHead(statusCode, statusMessage.replace(NOT_IN_REASON, ' '), passed)
    answer.pipe(response)
    // Cut off: it must not look whole.
    answer.on('close', () => answer.complete || response.destroy())
  })
  // Nobody asked for another protocol.
  onward.on('upgrade', (_, upgraded) => void upgraded.destroy(new Error('an answer that is none')))
  onward.on('error', () => {})
  onward.on('close', () => {
    if (response.headersSent) return
    response.writeHead(502).end('sandlot: the connection ended before an answer came\n')
  })
  response.on('close', () => {
    outer?.destroy()
    // Of a connection that is used again, the request alone is given up.
    if (!response.writableFinished) onward.destroy()
  })
  request.pipe(onward)
}
