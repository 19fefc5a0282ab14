import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { SandlotError } from '@sandlot/protocol'
import type { InnerServer } from '@sandlot/runtime'
import { refuse } from '../connect/upgrade.ts'
import { errorAnswer } from './answer.ts'
import { isSandboxToken } from './sandbox-token.ts'

/**
 * The API as it answers inside of containers, by the way out of their sandboxes and by no port: to tokens of sandboxes alone. A key is
 * refused too, and so is what needs none.
 */
export function innerApi(server: Server): InnerServer {
  return {
    request(incoming: IncomingMessage, outgoing: ServerResponse) {
      const refusal = refusalOf(incoming)
      if (refusal === undefined) return void server.emit('request', incoming, outgoing)
      const { status, headers, body } = errorAnswer(refusal)
      outgoing.writeHead(status, { ...headers, connection: 'close' }).end(body)
    },
    upgrade(incoming: IncomingMessage, duplex: Duplex, head: Buffer) {
      const refusal = refusalOf(incoming)
      if (refusal === undefined) server.emit('upgrade', incoming, duplex, head)
      else refuse(duplex, errorAnswer(refusal))
    },
  }
}

function refusalOf({ headers }: IncomingMessage): SandlotError | undefined {
  const token = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1]
  if (token !== undefined && isSandboxToken(token)) return undefined
  return new SandlotError('unauthorized', 'only the token of a sandbox is taken here')
}
