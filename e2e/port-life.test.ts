/** What becomes of connections to ports when their sandbox, or the daemon, does something else. */
import type { Duplex } from 'node:stream'
import { Sandbox } from 'sandlot'
import { expect, test } from 'vitest'
import { python } from './harness/shells.ts'
import { story } from './harness/story.ts'
import { until } from './harness/until.ts'

/** Says back what it is told; `wait` is answered when nothing else has used the sandbox for long. */
const SERVER = python(`
import os, socket, threading, time
if os.fork(): os._exit(0)
os.setsid()
for fd in (0, 1, 2): os.close(fd)
def echo(peer):
    while data := peer.recv(65536):
        if data == b'wait': time.sleep(9)
        peer.sendall(data)
    peer.close()
def events(peer):
    peer.recv(65536)
    peer.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Type: text/event-stream\\r\\n\\r\\ndata: 0\\n\\n')
    peer.recv(1)
def serve(port, answer):
    s = socket.create_server(('127.0.0.1', port))
    def accept():
        while True: threading.Thread(target=answer, args=(s.accept()[0],)).start()
    threading.Thread(target=accept).start()
serve(7000, echo); serve(7001, events)
`)
const [ECHO, EVENTS] = [7_000, 7_001]
/** Connections that the server of the echo has, with their states: 01 is open. */
const OPEN = `grep ':1B58 ' /proc/net/tcp || true`

/** What it says next, or how it ended. */
async function heard(connection: Duplex): Promise<string> {
  return await new Promise((resolve) => {
    connection.once('data', (bytes) => resolve(String(bytes)))
    connection.once('end', () => resolve('ended'))
    connection.once('error', (error) => resolve(String((error as { code?: string }).code)))
    connection.once('close', () => resolve('closed'))
  })
}

async function talk(connection: Duplex, text: string): Promise<string> {
  const answer = heard(connection)
  connection.write(text)
  return await answer
}

/** Events of the server, from the first one on. */
async function listening(url: string): Promise<ReadableStreamDefaultReader<Uint8Array>> {
  const reader = (await fetch(url)).body?.getReader()
  if (!reader) throw new Error('no events')
  expect(new TextDecoder().decode((await reader.read()).value)).toBe('data: 0\n\n')
  return reader
}

await story('connections to ports', { pool: 1 }, (at) => {
  async function serving(options: { checkpointable?: true; keepWarm?: string } = {}) {
    const sandbox = await at.client.sandboxes.create({ from: at.image, ...options })
    await sandbox.exec(SERVER)
    await Promise.all([ECHO, EVENTS].map((port) => sandbox.ports.wait(port)))
    return sandbox
  }

  test('keep their sandbox warm, raw ones and requests, and no longer than they last', async () => {
    await using sandbox = await serving({ keepWarm: '6s' })
    const url = await sandbox.ports.url(EVENTS)
    const raw = await sandbox.ports.connect(ECHO)
    expect(await talk(raw, 'wait')).toBe('wait')
    const events = await listening(url)
    raw.destroy()
    const other = await sandbox.ports.connect(ECHO)
    expect(await talk(other, 'wait')).toBe('wait')
    other.destroy()
    expect(await sandbox.view()).toMatchObject({ state: 'running' })
    await events.cancel()
    await until('it ended', async () => (await sandbox.view()).ending?.kind === 'expired')
    expect((await fetch(url)).status).toBe(410)
  })

  test('of a sandbox that is paused are cut off, with the reason, and never look whole', async () => {
    await using sandbox = await serving({ checkpointable: true })
    const url = await sandbox.ports.url(EVENTS)
    const [raw, events] = await Promise.all([sandbox.ports.connect(ECHO), listening(url)])
    expect(await talk(raw, 'one')).toBe('one')
    const saw = heard(raw)
    const more = events.read().then(
      ({ done }) => `done: ${done}`,
      (error: Error) => error.message,
    )
    await sandbox.pause()
    expect(await saw).toBe('sandbox_paused')
    expect(await more).toBe('terminated')
    expect((await fetch(url)).headers.get('sandlot-error')).toBe('sandbox_paused')
    await expect(sandbox.ports.connect(ECHO)).rejects.toMatchObject({ code: 'sandbox_paused' })
    await sandbox.resume()
    const again = await sandbox.ports.connect(ECHO)
    expect(await talk(again, 'two')).toBe('two')
    again.destroy()
    await (await listening(url)).cancel()
  })

  test('of a sandbox that is copied go on; its copies have none of them, and take others', async () => {
    await using sandbox = await serving({ checkpointable: true })
    const raw = await sandbox.ports.connect(ECHO)
    expect(await talk(raw, 'one')).toBe('one')
    const [copy] = await sandbox.fork(1)
    if (!(copy instanceof Sandbox)) throw copy
    expect(await talk(raw, 'two')).toBe('two')
    await until('its server has heard that they are over', async () => {
      return !(await copy.exec(OPEN)).stdout.includes(' 01 ')
    })
    const there = await copy.ports.connect(ECHO)
    expect(await talk(there, 'three')).toBe('three')
    there.destroy()
    raw.destroy()
    await copy.stop()
  })

  test('hold up no daemon that stops, and are told why they end', async () => {
    const sandbox = await serving()
    const raw = await sandbox.ports.connect(ECHO)
    expect(await talk(raw, 'one')).toBe('one')
    const events = await listening(await sandbox.ports.url(EVENTS))
    const saw = heard(raw)
    const more = events.read().catch((error: Error) => error.message)
    await at.daemon.stop()
    expect(await saw).toMatch(/^(sandbox_gone|draining|connection_lost)$/)
    expect(await more).toBe('terminated')
    await at.daemon.start()
  })
})
