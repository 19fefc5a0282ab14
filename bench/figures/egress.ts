import { Agent } from 'node:http'
import { Sandlot } from 'sandlot'
import type { Bench } from '../bench.ts'
import { BenchDaemon, daemonSetting } from '../daemon/daemon.ts'
import { interleave } from '../interleave.ts'
import { ask, megabytesPerSecond, plainServer } from '../plain-http.ts'

const MB = 1_000_000
const SIZE_BYTES = 64 * MB

/** Tells how long the bytes took, without the start of the interpreter and of the tunnel. */
const CLIENT = `
import os, socket, sys, time
port, size, way = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
proxy = os.environ['ALL_PROXY'].rsplit(':', 1)[1].strip('/')
peer = socket.create_connection(('127.0.0.1', int(proxy)))
peer.sendall(b'CONNECT localhost:%d HTTP/1.1\\r\\n\\r\\n' % port)
if b' 200 ' not in peer.recv(65536): sys.exit('the tunnel was refused')
begun = time.monotonic()
if way == 'down':
    peer.sendall(b'GET /large HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n')
else:
    peer.sendall(b'POST / HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\nContent-Length: %d\\r\\n\\r\\n' % size)
    part, left = b'x' * 262144, size
    while left > 0:
        peer.sendall(part[:left]); left -= len(part)
came = 0
while True:
    more = peer.recv(262144)
    if not more: break
    came += len(more)
if way == 'down' and came < size: sys.exit('the answer was cut off')
print(time.monotonic() - begun)
`

/** Bytes between a program in a sandbox and a host that its policy allows, against a client outside of one. */
export const egress: Bench = async (context) => {
  const image = await context.image()
  const setting = await daemonSetting(context, { poolTarget: 0 })
  const daemon = context.scope.use(await BenchDaemon.start(context, setting))
  const client = context.scope.use(new Sandlot(daemon))
  const { port, url } = context.scope.use(await plainServer(SIZE_BYTES))
  // By name, as most are reached: what they begin with is looked at.
  const network = { allow: [`localhost:${port}`, `127.0.0.1:${port}`] }
  const sandbox = context.scope.use(await client.sandboxes.create({ from: image.id, network }))
  const agent = new Agent({ keepAlive: true })
  context.scope.defer(() => agent.destroy())
  const inside = async (way: 'down' | 'up') => {
    const command = ['python3', '-c', CLIENT, String(port), String(SIZE_BYTES), way]
    const { exitCode, stdout, stderr } = await sandbox.exec(command, { signal: context.signal })
    if (exitCode !== 0) throw new Error(`the client in the sandbox failed: ${stderr}`)
    return SIZE_BYTES / MB / Number(stdout)
  }
  const plain = (work: () => Promise<void>) => megabytesPerSecond(SIZE_BYTES, work)

  const samples = await interleave(
    context,
    { max: 10 },
    {
      rawDown: () => plain(() => ask(agent, `${url}large`)),
      down: () => inside('down'),
      rawUp: () => plain(() => ask(agent, url, SIZE_BYTES)),
      up: () => inside('up'),
    },
  )
  return [
    {
      ...{ name: 'egress.download', unit: 'MB/s', samples: samples.down },
      ...{ reference: samples.rawDown, target: { of: 'value', atLeast: 100 } },
    },
    {
      ...{ name: 'egress.upload', unit: 'MB/s', samples: samples.up },
      ...{ reference: samples.rawUp, target: { of: 'value', atLeast: 100 } },
    },
  ]
}
