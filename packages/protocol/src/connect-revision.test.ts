import { expect, test } from 'vitest'
import { CONNECT_REVISION, revisionRefusal } from './connect-revision.ts'

test('who says no revision, or nonsense, speaks the first', () => {
  const version = '0.1.0'
  expect(revisionRefusal({ client: undefined, daemon: 1, version })).toBeUndefined()
  expect(revisionRefusal({ client: '2', daemon: 2, version })).toBeUndefined()
  for (const client of [undefined, '1', 'two']) {
    expect(revisionRefusal({ client, daemon: CONNECT_REVISION, version })).toMatchObject({
      code: 'protocol_differs',
      message: `the client is the older one: the client speaks revision 1 of the protocol, the daemon (0.1.0) revision ${CONNECT_REVISION}`,
    })
  }
})
