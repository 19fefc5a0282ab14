import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import type { Sandbox } from 'sandlot'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { story } from './harness/story.ts'
import { until } from './harness/until.ts'

/** Holds connections of both protocols and tells of each what comes; opens new ones for whoever asks on a FIFO. */
const HOLDER = `
import os, socket, struct, sys, threading
PROXY = ('127.0.0.1', 61080)
def told(name, text):
    with open('/told/' + name, 'a') as f: f.write(text + '\\n')
def tunnel(host, port):
    s = socket.create_connection(PROXY)
    s.sendall(f'CONNECT {host}:{port} HTTP/1.1\\r\\nHost: {host}:{port}\\r\\n\\r\\n'.encode())
    head = b''
    while not head.endswith(b'\\r\\n\\r\\n'):
        part = s.recv(1)
        if not part: raise OSError('closed')
        head += part
    status = head.split(b' ')[1].decode()
    if status != '200': raise OSError(status)
    return s
def socks(host, port):
    s = socket.create_connection(PROXY)
    s.sendall(b'\\x05\\x01\\x00'); s.recv(2)
    s.sendall(b'\\x05\\x01\\x00\\x03' + bytes([len(host)]) + host.encode() + struct.pack('>H', port))
    answer = s.recv(10)
    if answer[1:2] != b'\\x00': raise OSError(f'socks {answer[1]}')
    return s
OPEN = {'tunnel': tunnel, 'socks': socks}
def read(name, s):
    try:
        while part := s.recv(1024): told(name, part.decode())
        told(name, 'end')
    except OSError as e: told(name, type(e).__name__)
def write(name, s):
    try:
        while True: s.sendall(b'x' * 65536)
    except OSError as e: told(name, type(e).__name__)
os.mkdir('/told'); os.mkfifo('/ask')
host, port, full = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for kind, opened in OPEN.items():
    threading.Thread(target=read, args=(kind, opened(host, port)), daemon=True).start()
threading.Thread(target=write, args=('full', tunnel(host, full)), daemon=True).start()
told('state', 'open')
# Held open for writing too: it has no end at which somebody's line could be lost.
for line in os.fdopen(os.open('/ask', os.O_RDWR)):
    name, kind, host, port = line.split()
    try:
        s = OPEN[kind](host, int(port)); s.sendall(b'hello'); told(name, s.recv(100).decode())
    except OSError as e: told(name, str(e))
`

/** Takes connections, and says on demand. */
class Upstream {
  readonly server: Server
  readonly open = new Set<Socket>()

  constructor(onOpen: (socket: Socket) => void) {
    this.server = createServer((socket) => {
      this.open.add(socket)
      socket.on('error', () => {}).on('close', () => this.open.delete(socket))
      onOpen(socket)
    })
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port
  }

  async listen(): Promise<void> {
    this.server.listen(0, '127.0.0.1')
    await once(this.server, 'listening')
  }

  say(text: string): void {
    for (const socket of this.open) socket.write(text)
  }

  close(): void {
    for (const socket of this.open) socket.destroy()
    this.server.close()
  }
}

const answering = (word: string) =>
  new Upstream((socket) => socket.on('data', () => socket.write(word)))
const first = answering('from the first')
const second = answering('from the second')
/** Reads nothing: whoever writes to it waits. */
const deaf = new Upstream((socket) => socket.pause())

beforeAll(async () => {
  for (const each of [first, second, deaf]) await each.listen()
})
afterAll(() => {
  for (const each of [first, second, deaf]) each.close()
})

const told = async (sandbox: Sandbox, name: string): Promise<string[]> => {
  const { stdout } = await sandbox.exec(['cat', `/told/${name}`])
  return stdout.split('\n').filter((line) => line !== '')
}

await story('connections and saved memory', { pool: 1 }, (given) => {
  const allow = (...upstreams: Upstream[]) => ({
    allow: upstreams.map(({ port }) => `127.0.0.1:${port}`),
  })
  const holding = async (): Promise<Sandbox> => {
    const sandbox = await given.client.sandboxes.create({
      ...{ from: given.image, checkpointable: true, network: allow(first, deaf) },
    })
    await sandbox.files.write('/holder.py', HOLDER)
    const argv = `/holder.py 127.0.0.1 ${first.port} ${deaf.port}`
    await sandbox.exec(`setsid python3 ${argv} > /holder.log 2>&1 &`)
    const isOpen = async () => (await told(sandbox, 'state')).length > 0
    await until('its connections are open', isOpen)
    return sandbox
  }
  let asked = 0
  const ask = async (sandbox: Sandbox, kind: string, { port }: Upstream): Promise<string> => {
    const name = `asked-${++asked}`
    await sandbox.exec(`echo ${name} ${kind} 127.0.0.1 ${port} > /ask`)
    const answer = await until(`${kind} is answered`, async () => (await told(sandbox, name))[0])
    return answer
  }
  /** What it holds is closed, each in its way, without anybody's doing. */
  const expectClosed = async (sandbox: Sandbox) => {
    for (const name of ['tunnel', 'socks', 'full']) {
      const last = async () => (await told(sandbox, name)).at(-1)
      await until(`${name} is closed`, async () => /Error|end/.test((await last()) ?? ''))
    }
  }
  const expectOpen = async (sandbox: Sandbox, word: string) => {
    first.say(word)
    for (const name of ['tunnel', 'socks']) {
      const last = async () => (await told(sandbox, name)).at(-1)
      await until(`${name} lives`, async () => (await last()) === word)
    }
    expect(await told(sandbox, 'full')).toEqual([])
  }

  test('are closed in each copy, whose new ones follow its own policy, and live on in the original', async () => {
    await using sandbox = await holding()
    await expectOpen(sandbox, 'before')
    const snapshot = await sandbox.snapshot({ kind: 'memory' })
    await expectOpen(sandbox, 'after')
    const from = snapshot.id
    const [same, other, none] = await Promise.all([
      given.client.sandboxes.create({ from, network: allow(first) }),
      given.client.sandboxes.create({ from, network: allow(second) }),
      given.client.sandboxes.create({ from }),
    ])
    for (const copy of [same, other, none]) await expectClosed(copy)
    for (const kind of ['tunnel', 'socks']) {
      expect(await ask(same, kind, first)).toBe('from the first')
      expect(await ask(other, kind, second)).toBe('from the second')
      // Not allowed: 403, or what SOCKS has for it.
      expect(await ask(other, kind, first)).toMatch(/^(403|socks 2)$/)
      expect(await ask(none, kind, first)).toMatch(/refused/)
    }
    const [forked] = await sandbox.fork(1)
    await expectClosed(forked as Sandbox)
    expect(await ask(forked as Sandbox, 'tunnel', first)).toBe('from the first')
    await expectOpen(sandbox, 'after all')
    // What was saved of one without a way out can have one again.
    const next = await none.snapshot({ kind: 'memory' })
    const again = await given.client.sandboxes.create({ from: next, network: allow(second) })
    expect(await ask(again, 'tunnel', second)).toBe('from the second')
    for (const copy of [same, other, none, forked as Sandbox, again]) await copy.stop()
    for (const { id } of [snapshot, next]) await given.client.snapshots.delete(id)
  })

  test('are closed by a pause, and can be opened again', async () => {
    await using sandbox = await holding()
    await sandbox.pause()
    await sandbox.resume()
    await expectClosed(sandbox)
    for (const kind of ['tunnel', 'socks']) {
      expect(await ask(sandbox, kind, first)).toBe('from the first')
    }
  })
})
