import { once } from 'node:events'
import type { NetworkPolicy } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { connectionPair } from '../fake/connection-pair.ts'
import type { Guest } from '../guest/guest.ts'
import type { BrokenOff, GuestRelay } from '../guest/guest-relay.ts'
import { MachineNetwork } from './machine.ts'
import { SandboxNetwork } from './sandbox-network.ts'

/** Nobody listens on the first port of the machine: who may connect is told that. */
const TARGET = '127.0.0.1:1'

/** A guest in which a process has asked for the target while no daemon was there: all comes with one read, as from an agent's pipe. */
function guestWithOneWaiting() {
  const [inside, outside] = connectionPair()
  inside.write(`CONNECT ${TARGET} HTTP/1.1\r\n\r\n`)
  const relay: GuestRelay = {
    onConnection: undefined,
    listen: () =>
      new Promise<BrokenOff>((resolve) => {
        setImmediate(() => {
          resolve({ connections: 0, unanswered: 0 })
          relay.onConnection?.(outside)
        })
      }),
  }
  return { guest: { relay } as unknown as Guest, inside }
}

test.each<[NetworkPolicy, string]>([
  [{ allow: [TARGET] }, 'HTTP/1.1 502'],
  [{ allow: ['127.0.0.1:2'] }, 'HTTP/1.1 403'],
])('a connection that waited for a daemon is decided by the policy: %j', async (policy, status) => {
  const machine = new MachineNetwork({
    ...{ env: {}, aptDirectory: '/nowhere', osReleasePath: '/nowhere', pipFiles: [], npmFiles: [] },
    certificatesPath: '/nowhere',
  })
  const { guest, inside } = guestWithOneWaiting()
  const answered = once(inside, 'data')
  const network = await SandboxNetwork.open(guest, { machine, policy, world: 'main' })
  expect(String((await answered)[0])).toContain(status)
  await network.close()
})
