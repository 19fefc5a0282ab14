/** Secrets, and what a sandbox may reach while it runs: with clients that are in real sandboxes. */
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import type { IncomingHttpHeaders, RequestListener } from 'node:http'
import { createServer as plainServer } from 'node:http'
import { createServer as secureServer } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { issueFor, makeAuthority } from '@sandlot/runtime'
import type { NetworkLogEntry, Sandbox } from 'sandlot'
import { afterAll, expect, test } from 'vitest'
import type * as handlers from './harness/handlers.ts'
import { allProcesses, commandOf } from './harness/processes.ts'
import { python } from './harness/shells.ts'
import { story } from './harness/story.ts'
import { until } from './harness/until.ts'

const VALUE = 'sk-what-no-sandbox-sees'

const seen: IncomingHttpHeaders[] = []
const answer: RequestListener = (request, response) => {
  seen.push(request.headers)
  response.end('thanks\n')
}

async function listening(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

// A host whose authority the daemon’s machine trusts, and nobody in a sandbox knows.
const directory = await mkdtemp(join(tmpdir(), 'sandlot-trust-'))
const own = await makeAuthority('of tests', Date.now())
const trusted = join(directory, 'trusted.pem')
await writeFile(trusted, own.certificate)
const { certificate: cert, key } = await issueFor('127.0.0.1', own, Date.now())
const servers = [plainServer(answer), secureServer({ cert, key }, answer)] as const
const [plain, secure] = await Promise.all(servers.map(listening))
afterAll(async () => {
  for (const server of servers) {
    server.closeAllConnections()
    server.close()
  }
  await rm(directory, { recursive: true })
})

/** The hosts of the test are on loopback, which clients ask directly otherwise. */
const PROXIED = { NO_PROXY: '', no_proxy: '' }

/** Asks twice over, or as often as is said, with what it has for a key. */
const ask = (address: string, times = 2) =>
  python(`
import os, ssl, urllib.request
for n in range(${times}):
    request = urllib.request.Request('${address}', headers={'Authorization': 'Bearer ' + os.environ['API_KEY']})
    try: print(urllib.request.urlopen(request, timeout=20).read().decode().strip())
    except Exception as e: print(repr(e), getattr(e, 'read', lambda: b'')())
`)

/** Opens a tunnel to the host, and TLS in it for each of the names. */
const askFor = (host: string, names: readonly string[]) =>
  python(`
import socket, ssl
context = ssl.create_default_context(); context.check_hostname = False; context.verify_mode = ssl.CERT_NONE
for name in ${JSON.stringify(names)}:
    s = socket.create_connection(('127.0.0.1', 61080), 20)
    s.sendall(b'CONNECT ${host} HTTP/1.1\\r\\n\\r\\n')
    while not s.recv(1000).endswith(b'\\r\\n\\r\\n'): pass
    try:
        s = context.wrap_socket(s, server_hostname=name or None)
        s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n'); print(name, s.recv(1000).split(b'\\r\\n')[0].decode())
    except ssl.SSLError as e: print(name, e)`)

async function said(sandbox: Sandbox, script: string | readonly string[]): Promise<string> {
  const { stdout, stderr } = await sandbox.exec(script)
  return stdout + stderr
}

const environment = { NODE_EXTRA_CA_CERTS: trusted }
await story('secrets of a sandbox', { pool: 1, environment }, (at) => {
  const network = { allow: [plain as string, secure as string] }
  const secrets = {
    API_KEY: { from: 'key', hosts: [secure as string], tls: 'terminate' as const },
    PLAIN_KEY: { from: 'key', hosts: [plain as string] },
  }

  test('commands see a placeholder and the host the secret, through TLS, pause and a crash', async () => {
    await at.client.secrets.set('key', VALUE)
    const sandbox = await at.client.sandboxes.create({
      ...{ from: at.image, env: PROXIED, network, secrets, checkpointable: true },
    })
    const env = await said(sandbox, 'env; cat /proc/self/environ; cat /dev/shm/.sandlot/*')
    expect(env).toMatch(/API_KEY=sandlot-secret-[0-9a-f]{40}/)
    expect(env).not.toMatch(/sk-what|PRIVATE KEY/)
    const check = async () => {
      seen.length = 0
      for (const address of [`https://${secure}/`, `http://${plain}/`]) {
        expect(await said(sandbox, ask(address))).toBe('thanks\nthanks\n')
      }
      expect(seen.map(({ authorization }) => authorization)).toEqual(
        Array(4).fill(`Bearer ${VALUE}`),
      )
    }
    await check()
    await sandbox.pause()
    await sandbox.resume()
    await check()
    await at.daemon.kill()
    await at.daemon.start()
    await check()
    expect(at.daemon.log.join('\n')).not.toContain(VALUE)
    await sandbox.stop()
    const log = await Array.fromAsync(sandbox.network.log())
    const closed = log.filter((entry) => entry.kind === 'closed')
    expect(closed.some(({ secrets: used }) => used?.includes('API_KEY'))).toBe(true)
  })

  test('an environment stands in no command line, no environment and no file of what runs a sandbox', async () => {
    const value = `kept-${process.pid}-${Date.now()}`
    const env = { TOKEN: value }
    await using sandbox = await at.client.sandboxes.create({ from: at.image, env })
    const running = sandbox.exec('echo $TOKEN; exec sleep 1000', { stream: true })
    for await (const { text } of running) {
      expect(text).toBe(`${value}\n`)
      break
    }
    for (const pid of allProcesses()) {
      for (const file of ['cmdline', 'environ']) {
        const text = await readFile(`/proc/${pid}/${file}`, 'latin1').catch(() => '')
        expect(text.includes(value), `${file} of ${commandOf(pid)}`).toBe(false)
      }
    }
    const { runDirectory } = at.daemon
    for (const entry of await readdir(runDirectory, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue
      const bytes = await readFile(join(entry.parentPath, entry.name)).catch(() => '')
      expect(bytes.includes(value), entry.name).toBe(false)
    }
  })

  test('one that has no network gets one and loses it while it runs, and its log tells both', async () => {
    await using sandbox = await at.client.sandboxes.create({
      from: at.image,
      env: { ...PROXIED, API_KEY: '-' },
    })
    expect(await said(sandbox, ask(`http://${plain}/`))).toContain('Connection refused')
    await sandbox.network.set({ allow: ['127.0.0.1:*'], limits: { connections: 4 } })
    const log = (): Promise<NetworkLogEntry[]> => Array.fromAsync(sandbox.network.log())
    for (let n = 1; n <= 2; n++) {
      expect(await said(sandbox, ask(`http://${plain}/`, 1))).toBe('thanks\n')
      // Who asks has its answer before, and would ask again.
      await until('its connection is closed', async () => {
        return (await log()).filter(({ kind }) => kind === 'closed').length === n
      })
    }
    const { policy } = await sandbox.network.set('none')
    expect(policy).toBe('none')
    const proxy = { http_proxy: 'http://127.0.0.1:61080' }
    const refused = await sandbox.exec(ask(`http://${plain}/`), { env: proxy })
    expect(refused.stdout).toContain('403')
    expect((await log()).map(({ kind }) => kind)).toEqual([
      ...['policy', 'opened', 'closed', 'opened', 'closed', 'policy', 'refused', 'refused'],
    ])
  })

  test('a function and a single task have their own', async () => {
    await at.client.secrets.set('key', VALUE)
    seen.length = 0
    const asksWithKey = at.client.fn<typeof handlers, 'asksWithKey'>(
      new URL('./harness/handlers.ts', import.meta.url),
      { export: 'asksWithKey', env: PROXIED, network, secrets },
    )
    expect(await asksWithKey.remote(`https://${secure}/`)).toBe('sandlot-secret- thanks\n')
    const use = { API_KEY: { from: 'key', hosts: [plain as string] } }
    const run = at.client.rollouts.program([{ id: 'own' }, { id: 'none' }], {
      ...{ from: at.image, command: ask(`http://${plain}/`), network: { agent: network } },
      env: PROXIED,
      each: ({ id }) => (id === 'own' ? { network: { agent: network }, secrets: use } : {}),
    })
    await run.wait()
    const keys = seen.map(({ authorization }) => authorization).sort()
    expect(keys).toEqual(Array(3).fill(`Bearer ${VALUE}`))
  })

  test('TLS in a tunnel for another name than the tunnel’s is cut off, and told', async () => {
    const target = (secure as string).replace('127.0.0.1', 'localhost')
    const allow = [target, secure as string]
    await using sandbox = await at.client.sandboxes.create({ from: at.image, network: { allow } })
    const answers = await said(sandbox, askFor(target, ['localhost', 'evil.example', '']))
    expect(answers).toMatch(
      /^localhost HTTP\/1.1 200 OK\nevil.example .*UNRECOGNIZED_NAME.*\n HTTP\/1.1 200 OK\n$/i,
    )
    const log = await Array.fromAsync(sandbox.network.log())
    const refused = log.filter((entry) => entry.kind === 'refused')
    expect(refused).toMatchObject([{ target, protocol: 'connect', reason: 'other_server' }])
  })

  test('where a process inside has the port, a network that comes later is refused by name', async () => {
    await using sandbox = await at.client.sandboxes.create({ from: at.image })
    const held = python(`
import socket, time
s = socket.socket(); s.bind(('127.0.0.1', 61080)); s.listen()
print('held', flush=True); time.sleep(60)`)
    const running = sandbox.exec(held, { stream: true })
    for await (const { bytes } of running) if (String(Buffer.from(bytes)).includes('held')) break
    await expect(sandbox.network.set({ allow: [plain as string] })).rejects.toMatchObject({
      code: 'network_unchanged',
      hint: expect.stringContaining('61080'),
    })
    expect((await sandbox.network.inForce()).policy).toBe('none')
  })
})
