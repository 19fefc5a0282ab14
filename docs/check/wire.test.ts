/** What is said on the wire has a revision for each pair, by which one knows another that is too old for it. */
import { createHash } from 'node:crypto'
import {
  CONNECT_REVISION,
  connectRequest,
  workerEventFromClient,
  workerEventFromServer,
} from '@sandlot/protocol'
import { textOf } from '@sandlot/testkit/repository'
import { expect, test } from 'vitest'
import { z } from 'zod'

/** Of the page's guest part. Where what is said changed, raise the revision first; then, or where its words alone did, write the new digest here. */
const GUEST_DIGEST = '4758a38749738110'

/** Of what clients ask and workers say. Where a client or a daemon of before would misunderstand it, raise the revision first; then write the new digest here. */
const CONNECT_DIGEST = '862e13e073479622'

test('a change of what the guest is asked and says has a revision of its own', async () => {
  const page = await textOf('docs/wire.md')
  const guest = page.slice(page.indexOf('## Guest: requests'), page.indexOf('## Client WebSocket'))
  expect(digestOf(guest)).toBe(GUEST_DIGEST)
})

test('a change of what client and daemon say is looked at for its revision', async () => {
  const schemas = [connectRequest, workerEventFromClient, workerEventFromServer]
  const texts = schemas.map((schema) =>
    JSON.stringify(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })),
  )
  expect(digestOf(texts.join())).toBe(CONNECT_DIGEST)
  const page = await revisionIn('docs/wire.md', /sandlot-protocol: (\d+)`/)
  const hello = await revisionIn('docs/wire.md', /\{ protocol: (\d+), server/)
  expect([page, hello]).toEqual([`${CONNECT_REVISION}`, `${CONNECT_REVISION}`])
})

test('page, agent and daemon have the same revision', async () => {
  const [page, agent, daemon] = await Promise.all([
    revisionIn('docs/wire.md', /sandlot-agent VERSION \(revision (\d+)\)/),
    revisionIn('native/agent/src/identity.rs', /" \(revision (\d+)\)"/),
    revisionIn('packages/runtime/src/guest/revision.ts', /GUEST_REVISION = (\d+)/),
  ])
  expect([agent, daemon]).toEqual([page, page])
})

const digestOf = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 16)

async function revisionIn(path: string, pattern: RegExp): Promise<string> {
  const found = pattern.exec(await textOf(path))?.[1]
  if (found === undefined) throw new Error(`${path} has no revision`)
  return found
}
