import { CONNECT_REVISION, CONNECT_REVISION_HEADER, type ConnectRequest } from '@sandlot/protocol'
import { Mux, type MuxStream, type PayloadMap } from '@sandlot/protocol/frames'
import { WebSocket } from 'ws'
import type { TestDaemon } from './daemon.ts'

/** A client of the WebSocket, with nothing between the test and the frames. */
export interface TestClient extends Disposable {
  readonly hello: PayloadMap
  readonly socket: WebSocket
  open(request: ConnectRequest): MuxStream
}

/** Rejects with the status of the answer where the upgrade is refused. */
export function connect(
  daemon: TestDaemon,
  headers: Record<string, string> = { authorization: `Bearer ${daemon.daemon.apiKey}` },
): Promise<TestClient> {
  const socket = new WebSocket(`${daemon.url.replace('http', 'ws')}/v1/connect`, {
    headers: { [CONNECT_REVISION_HEADER]: `${CONNECT_REVISION}`, ...headers },
  })
  socket.binaryType = 'nodebuffer'
  const { promise, resolve, reject } = Promise.withResolvers<TestClient>()
  let resume = () => {}
  const mux = new Mux({
    side: 'dialler',
    transport: {
      write: (bytes) => {
        socket.send(bytes, () => resume())
        return true
      },
      onDrain: (callback) => {
        resume = callback
      },
    },
    onHello: (hello) =>
      resolve({
        hello,
        socket,
        open: (request) => mux.open(request as PayloadMap),
        [Symbol.dispose]: () => socket.terminate(),
      }),
  })
  socket.on('message', (data) => mux.receive(data as Buffer))
  socket.on('unexpected-response', (_, response) => {
    reject(new Error(`answered ${response.statusCode}`))
    socket.terminate()
  })
  socket.on('error', reject)
  socket.on('close', () => mux.close())
  return promise
}

/** All data of a channel as text. */
export async function textOf(stream: MuxStream, channel: number): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of stream.read(channel)) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}
