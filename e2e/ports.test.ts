import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Sandbox } from 'sandlot'
import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { story } from './harness/story.ts'

const SERVER = fileURLToPath(new URL('ports-server.py', import.meta.url))
/** HTTP; hostile answers; and one that listens on ::1 alone and says back what it is told. */
const [HTTP, HOSTILE, ECHO] = [8_000, 8_001, 5_432]
const SIZE = 50 * 2 ** 20
const commandLine = fileURLToPath(new URL('../packages/cli/src/main.ts', import.meta.url))

await story('ports of a sandbox', { pool: 1 }, (at) => {
  async function serving(): Promise<Sandbox> {
    const sandbox = await at.client.sandboxes.create({ from: at.image })
    await sandbox.files.write('/server.py', await readFile(SERVER))
    sandbox.exec(['python3', '/server.py']).catch(() => {})
    await Promise.all([HTTP, HOSTILE, ECHO].map((port) => sandbox.ports.wait(port)))
    return sandbox
  }

  test('HTTP by a URL: uploads, downloads, events as they are sent, and a WebSocket', async () => {
    await using sandbox = await serving()
    const listed = await sandbox.ports.list()
    expect(listed.map(({ port }) => port)).toEqual([ECHO, HTTP, HOSTILE])
    expect(listed.every(({ reachable }) => reachable)).toBe(true)
    const url = await sandbox.ports.url(HTTP)

    const sent = Buffer.alloc(SIZE, 'sandlot ')
    const up = await fetch(`${url}digest`, { method: 'POST', body: sent })
    expect(await up.text()).toBe(sha256(sent))
    const down = await fetch(`${url}bytes?${SIZE}`)
    expect(sha256(Buffer.from(await down.arrayBuffer()))).toBe(sha256(Buffer.alloc(SIZE, 'x')))

    const events = (await fetch(`${url}events`)).body?.pipeThrough(new TextDecoderStream())
    const reader = events?.getReader()
    for (const number of [0, 1, 2]) {
      expect((await reader?.read())?.value).toBe(`data: ${number}\n\n`)
      // It waits to be told before it sends the next.
      await fetch(`${url}next`, { method: 'POST' })
    }
    await reader?.cancel()

    const socket = new WebSocket(`${url.replace('http', 'ws')}echo`)
    await once(socket, 'open')
    socket.send('over and out')
    expect(String((await once(socket, 'message'))[0])).toBe('over and out')
    socket.close()
  })

  test('what can’t be reached says why', async () => {
    const sandbox = await serving()
    const url = await sandbox.ports.url(9_999)
    const nothing = await fetch(url)
    expect(nothing.status).toBe(502)
    expect(await nothing.json()).toMatchObject({
      error: { code: 'port_refused', details: { listening: [ECHO, HTTP, HOSTILE] } },
    })
    await sandbox.stop()
    const gone = await fetch(url)
    expect(gone.status).toBe(410)
    expect(await gone.json()).toMatchObject({ error: { code: 'sandbox_gone' } })
  })

  test('TCP through the command line, also to ::1, and through a restart of the daemon', async () => {
    await using sandbox = await serving()
    const url = await sandbox.ports.url(HTTP)
    const child = spawn(process.execPath, [commandLine, 'port-forward', sandbox.id, `0:${ECHO}`], {
      env: { ...process.env, SANDLOT_URL: at.daemon.url, SANDLOT_API_KEY: at.daemon.apiKey },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const ended = once(child, 'exit')
    const line = (await createInterface({ input: child.stdout })[Symbol.asyncIterator]().next())
      .value
    const port = Number(/:(\d+) -> /.exec(line ?? '')?.[1])
    const talk = async (text: string) => {
      const socket = connect(port, '127.0.0.1')
      socket.end(text)
      return Buffer.concat(await Array.fromAsync(socket)).toString()
    }
    expect(await Promise.all(['a', 'b', 'c'].map(talk))).toEqual(['a', 'b', 'c'])
    await at.daemon.kill()
    await at.daemon.start()
    expect((await fetch(`${url}bytes?3`)).status).toBe(200)
    expect(await talk('again')).toBe('again')
    child.kill('SIGINT')
    expect((await ended)[0]).toBe(0)
  })

  test('a hostile server harms nobody: its answers are cut, its neighbours are served', async () => {
    await using sandbox = await serving()
    const [bad, good] = await Promise.all([HOSTILE, HTTP].map((port) => sandbox.ports.url(port)))
    const failed = async (path: string) => {
      const answer = await fetch(`${bad}${path}`)
      return [answer.status, answer.headers.get('sandlot-error')]
    }
    for (const path of ['headers', 'garbage', 'interim', 'nothing', 'protocol']) {
      expect(await failed(path), path).toEqual([502, 'port_failed'])
    }
    const cut = await fetch(`${bad}half`)
    await expect(cut.text()).rejects.toThrow()
    // Two answers for one question: the second is nobody's.
    expect(await (await fetch(`${bad}smuggled`)).text()).toBe('one')
    expect(await (await fetch(`${good}bytes?3`)).text()).toBe('xxx')

    const before = (await at.daemon.memory()).nowBytes
    const unread = await Promise.all([1, 2, 3, 4].map(() => fetch(`${bad}endless`)))
    for (let round = 0; round < 20; round++) {
      expect(await (await fetch(`${good}bytes?3`)).text()).toBe('xxx')
    }
    expect((await at.daemon.memory()).nowBytes - before).toBeLessThan(128 * 2 ** 20)
    await Promise.all(unread.map((answer) => answer.body?.cancel()))
    expect((await sandbox.exec(['true'])).exitCode).toBe(0)
  })
})

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}
