import { type Agent, type IncomingMessage, request as openRequest } from 'node:http'
import { headersOf } from '../hop-headers.ts'
import { answerWithout, changeProtocol, type Upgrading } from '../upgrade.ts'
import type { Filled } from './relay-secrets.ts'

const PROTOCOL = 'websocket'

/** Whether a request is for another protocol that is passed on; of any other one it is answered as if it had not asked. */
export function wantsUpgrade({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === PROTOCOL
}

/** From inside. */
export interface Upgrade extends Filled, Upgrading {
  readonly request: IncomingMessage
  /** Has the connection to the host. */
  readonly agent: Agent
}

/** Asks the host for the protocol, and joins both connections where it agrees. What it answers else is passed on, and ends the connection. */
export function passUpgrade(upgrade: Upgrade): void {
  const { request, connection, agent, path, headers, cover } = upgrade
  const onward = openRequest({
    ...{ agent, path, method: request.method ?? 'GET', setHost: false },
    headers: [...headers, 'Connection', 'Upgrade', 'Upgrade', PROTOCOL],
  })
  onward.on('upgrade', (answer, other, otherHead) => {
    const covered = cover(headersOf(answer))
    changeProtocol(upgrade, { protocol: PROTOCOL, headers: covered, other, otherHead })
  })
  onward.on('response', (answer) => {
    const covered = cover(headersOf(answer, ['transfer-encoding']))
    answerWithout(answer, request, { connection, headers: covered })
  })
  // What is joined ends with its connections; before, nothing else would end it.
  onward.on('error', () => void connection.destroy())
  connection.once('close', () => void onward.destroy())
  onward.end()
}
