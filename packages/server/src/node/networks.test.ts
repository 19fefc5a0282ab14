import { once } from 'node:events'
import type { PhaseNetwork } from '@sandlot/protocol'
import type { Sandbox } from '@sandlot/runtime'
import { expect, test } from 'vitest'
import { openNode } from '../testing/node.ts'
import { Node } from './node.ts'

type Relay = Sandbox['guest']['relay'] & { port?: number; connect(): NodeJS.ReadWriteStream }

const PHASES: PhaseNetwork = {
  setup: { allow: ['127.0.0.1:1'] },
  grade: { allow: ['127.0.0.1:2'] },
}

function relayOf(node: Node, id: string): Relay {
  return node.sandboxes.entries.get(id)?.sandbox?.guest.relay as Relay
}

/** What a process inside is answered. */
async function askedFor(node: Node, id: string, host: string): Promise<string> {
  const connection = relayOf(node, id).connect()
  connection.write(`CONNECT ${host} HTTP/1.1\r\n\r\n`)
  const [answer] = await once(connection, 'data')
  return String(answer)
}

const NOT_ALLOWED = 'HTTP/1.1 403'
/** It is allowed, and nobody listens. */
const ALLOWED = 'HTTP/1.1 502'

async function envOf(node: Node, id: string) {
  using lent = await node.sandboxes.lend(id)
  return lent.env
}

test('a sandbox without a policy has no way out, and no variables', async () => {
  await using at = await openNode()
  const { sandbox } = await at.node.acquire(at.request({ network: { agent: 'none' } }))
  expect(relayOf(at.node, sandbox).port).toBeUndefined()
  expect(await envOf(at.node, sandbox)).not.toHaveProperty('HTTP_PROXY')
  await at.node.enterPhase({ sandbox, phase: 'grade' })
})

test('the policy of the phase decides, and what an owner sets goes before it', async () => {
  await using at = await openNode()
  const { node } = at
  const env = { NO_PROXY: 'mine' }
  const request = at.request({ network: PHASES, phase: 'setup', env })
  const { sandbox } = await node.acquire(request)
  expect(await askedFor(node, sandbox, '127.0.0.1:1')).toContain(ALLOWED)
  expect(await askedFor(node, sandbox, '127.0.0.1:2')).toContain(NOT_ALLOWED)
  expect(await envOf(node, sandbox)).toMatchObject({
    HTTP_PROXY: 'http://127.0.0.1:61080',
    NO_PROXY: 'mine',
  })
  await node.enterPhase({ sandbox, phase: 'agent' })
  expect(await askedFor(node, sandbox, '127.0.0.1:1')).toContain(NOT_ALLOWED)
  expect(await envOf(node, sandbox)).not.toHaveProperty('HTTP_PROXY')
  await node.openGradeWorld({ sandbox })
  await node.enterPhase({ sandbox, phase: 'grade', world: 'grade' })
  expect(await askedFor(node, sandbox, '127.0.0.1:2')).toContain(ALLOWED)
  expect(await node.release({ sandbox, reason: 'over' })).toMatchObject({
    usage: { networkBytes: 0 },
  })
})

test('a restart finds the phase again', async () => {
  await using at = await openNode()
  const request = at.request({ network: PHASES, phase: 'setup' })
  const { sandbox } = await at.node.acquire(request)
  await at.node.enterPhase({ sandbox, phase: 'agent' })
  await at.node.close('keep')
  const next = await Node.open(at.given)
  await using stack = new AsyncDisposableStack()
  stack.defer(() => next.close('stop'))
  await next.recover()
  expect(await envOf(next, sandbox)).not.toHaveProperty('HTTP_PROXY')
  expect(await askedFor(next, sandbox, '127.0.0.1:1')).toContain(NOT_ALLOWED)
  await next.enterPhase({ sandbox, phase: 'grade' })
  expect(await askedFor(next, sandbox, '127.0.0.1:2')).toContain(ALLOWED)
})
