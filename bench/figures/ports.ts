import { Agent } from 'node:http'
import { Sandlot } from 'sandlot'
import type { Bench } from '../bench.ts'
import { BenchDaemon, daemonSetting } from '../daemon/daemon.ts'
import { interleave, timed } from '../interleave.ts'
import { ask, megabytesPerSecond, plainServer } from '../plain-http.ts'

const MB = 1_000_000
const SIZE_BYTES = 64 * MB
const REQUESTS = 500
const CONNECTIONS = 16
const PORT = 8_000

/** Of HTTP no more than what is measured: what it costs is the sandbox's own. */
const SERVER = `
import socket, threading
part = b'x' * 262144
def serve(peer):
    rest = b''
    while True:
        while b'\\r\\n\\r\\n' not in rest:
            more = peer.recv(65536)
            if not more: return peer.close()
            rest += more
        head, rest = rest.split(b'\\r\\n\\r\\n', 1)
        if head.startswith(b'GET /small'):
            peer.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok')
        elif head.startswith(b'GET'):
            left = ${SIZE_BYTES}
            peer.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n' % left)
            while left > 0:
                peer.sendall(part[:left]); left -= len(part)
        else:
            left = ${SIZE_BYTES} - len(rest)
            while left > 0: left -= len(peer.recv(min(left, 262144)))
            rest = b''
            peer.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok')
server = socket.create_server(('127.0.0.1', ${PORT}), backlog=64)
while True: threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
`

/** Requests and bytes through daemon and agent to a server in a sandbox, against a server on the loopback of this machine. */
export const ports: Bench = async (context) => {
  const image = await context.image()
  const setting = await daemonSetting(context, { poolTarget: 0 })
  const daemon = context.scope.use(await BenchDaemon.start(context, setting))
  const client = context.scope.use(new Sandlot(daemon))
  const sandbox = context.scope.use(await client.sandboxes.create({ from: image.id }))
  sandbox.exec(['python3', '-c', SERVER], { signal: context.signal }).catch(() => {})
  await sandbox.ports.wait(PORT, { signal: context.signal })
  const ours = await sandbox.ports.url(PORT)
  const reference = context.scope.use(await plainServer(SIZE_BYTES))
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  context.scope.defer(() => agent.destroy())

  const before = daemon.memoryBytes().now
  await daemon.forgetPeak()
  const samples = await interleave(
    context,
    { max: 10 },
    {
      rawDown: () => rate(() => ask(agent, `${reference.url}large`)),
      down: () => rate(() => ask(agent, `${ours}large`)),
      rawUp: () => rate(() => ask(agent, reference.url, SIZE_BYTES)),
      up: () => rate(() => ask(agent, ours, SIZE_BYTES)),
      rawRequests: () => requests(agent, `${reference.url}small`),
      requests: () => requests(agent, `${ours}small`),
    },
  )
  const growth = (daemon.memoryBytes().peak - before) / MB
  return [
    {
      ...{ name: 'ports.download', unit: 'MB/s', samples: samples.down },
      ...{ reference: samples.rawDown, target: { of: 'value', atLeast: 100 } },
    },
    {
      ...{ name: 'ports.upload', unit: 'MB/s', samples: samples.up },
      ...{ reference: samples.rawUp, target: { of: 'value', atLeast: 100 } },
    },
    {
      ...{ name: 'ports.requests', unit: '/s', samples: samples.requests },
      ...{ reference: samples.rawRequests, target: { of: 'value', atLeast: 1_000 } },
      note: `GET of two bytes, ${CONNECTIONS} at a time`,
    },
    {
      ...{ name: 'ports.memory', unit: 'MB', samples: [growth] },
      note: 'growth of the daemon’s peak meanwhile',
    },
  ]
}

function rate(work: () => Promise<void>): Promise<number> {
  return megabytesPerSecond(SIZE_BYTES, work)
}

async function requests(agent: Agent, url: string): Promise<number> {
  const elapsedMs = await timed(async () => {
    let left = REQUESTS
    const worker = async () => {
      while (left-- > 0) await ask(agent, url)
    }
    await Promise.all(Array.from({ length: CONNECTIONS }, worker))
  })
  return REQUESTS / (elapsedMs / 1_000)
}
