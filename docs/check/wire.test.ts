/** What daemon and agent say to one another has a revision, by which a daemon knows an agent that is too old for it. */
import { createHash } from 'node:crypto'
import { textOf } from '@sandlot/testkit/repository'
import { expect, test } from 'vitest'

/** Of the page's guest part. Where what is said changed, raise the revision first; then, or where its words alone did, write the new digest here. */
const DIGEST = '4758a38749738110'

test('a change of what the guest is asked and says has a revision of its own', async () => {
  const page = await textOf('docs/wire.md')
  const guest = page.slice(page.indexOf('## Guest: requests'), page.indexOf('## Client WebSocket'))
  expect(createHash('sha256').update(guest).digest('hex').slice(0, 16)).toBe(DIGEST)
})

test('page, agent and daemon have the same revision', async () => {
  const [page, agent, daemon] = await Promise.all([
    revisionIn('docs/wire.md', /sandlot-agent VERSION \(revision (\d+)\)/),
    revisionIn('native/agent/src/identity.rs', /" \(revision (\d+)\)"/),
    revisionIn('packages/runtime/src/guest/revision.ts', /GUEST_REVISION = (\d+)/),
  ])
  expect([agent, daemon]).toEqual([page, page])
})

async function revisionIn(path: string, pattern: RegExp): Promise<string> {
  const found = pattern.exec(await textOf(path))?.[1]
  if (found === undefined) throw new Error(`${path} has no revision`)
  return found
}
