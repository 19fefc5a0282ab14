import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { json } from 'node:stream/consumers'
import { CONNECT_REVISION, CONNECT_REVISION_HEADER } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { startTestDaemon } from '../testing/daemon.ts'
import { VERSION } from '../version.ts'

test.each([
  ['of before', '1'],
  ['to come', `${CONNECT_REVISION + 1}`],
  ['that knows of no revisions', undefined],
])('a client %s is told so before anything is said', async (_, revision) => {
  await using at = await startTestDaemon()
  const sent = request(`${at.url}/v1/connect`, {
    headers: {
      ...{ authorization: `Bearer ${at.daemon.apiKey}`, connection: 'upgrade' },
      ...{
        upgrade: 'websocket',
        'sec-websocket-version': '13',
        'sec-websocket-key': 'x'.repeat(24),
      },
      ...(revision === undefined ? {} : { [CONNECT_REVISION_HEADER]: revision }),
    },
  }).end()
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  expect(answer.statusCode).toBe(426)
  expect(await json(answer)).toMatchObject({
    error: { code: 'protocol_differs', message: expect.stringContaining(`(${VERSION})`) },
  })
})
