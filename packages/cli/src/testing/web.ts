import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Web extends AsyncDisposable {
  readonly url: string
  /** Paths that were asked for. */
  readonly asked: readonly string[]
  /** What the last request brought as `authorization`. */
  readonly authorization: () => string | undefined
}

/** A web server on loopback: each path has its content, all others are 404. */
export async function serveWeb(pages: Readonly<Record<string, string | Uint8Array>>): Promise<Web> {
  const asked: string[] = []
  let authorization: string | undefined
  const server = createServer((request, response) => {
    asked.push(request.url ?? '')
    authorization = request.headers.authorization
    const page = pages[request.url ?? '']
    response.statusCode = page === undefined ? 404 : 200
    response.end(page ?? 'nothing here')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    authorization: () => authorization,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
