/** The model that programs of the chaos bench ask: an HTTP server of this machine that takes its time. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { RIGHT } from './work.ts'

const LEAST_MS = 200
const MOST_MS = 1_500

export interface ChaosModel extends Disposable {
  readonly url: string
}

export async function serveModel(): Promise<ChaosModel> {
  const server = createServer(async (request, response) => {
    request.resume()
    await delay(LEAST_MS + Math.random() * (MOST_MS - LEAST_MS))
    response.end(RIGHT)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/v1`,
    [Symbol.dispose]() {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** Three calls, one after the other; the answer is what the last one said. Whose call breaks off has none. */
export const ASK_MODEL = [
  ...['python3', '-c'],
  [
    'import os, urllib.request',
    'for _ in range(3): said = urllib.request.urlopen(os.environ["SANDLOT_MODEL_URL"] + "/x", b"?").read()',
    'os.makedirs("/work", exist_ok=True)',
    'open("/work/answer", "wb").write(said)',
  ].join('\n'),
]
