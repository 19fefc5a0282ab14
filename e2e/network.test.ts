import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { Sandbox } from 'sandlot'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { python } from './harness/shells.ts'
import { story } from './harness/story.ts'

/** Asks for each address, once as a request and once through a tunnel, and prints what it is answered. */
function ask(...addresses: string[]): string {
  return `python3 -c '
import http.client, os, socket
for address in ${JSON.stringify(addresses)}:
    proxy = os.environ.get("HTTP_PROXY", "http://127.0.0.1:61080").removeprefix("http://")
    try:
        c = http.client.HTTPConnection(proxy, timeout=20)
        c.request("GET", f"http://{address}/"); r = c.getresponse()
        print(r.status, r.read().decode().strip())
        c = http.client.HTTPConnection(proxy, timeout=20); c.set_tunnel(address)
        c.request("GET", "/"); r = c.getresponse()
        print("tunnel", r.status, r.read().decode().strip())
    except OSError as e: print(e)'`
}

const OUTSIDE = python(`
import socket
for host, port in (('93.184.216.34', 80), ('169.254.169.254', 80), ('10.0.0.1', 443), ('2606:4700::1', 443)):
    try: socket.create_connection((host, port), 5); print('reached', host)
    except OSError as e: print(e.errno)
try: print(socket.getaddrinfo('example.org', 80))
except OSError: print('no names')`)

let server: Server
let other: Server

function portOf(of: Server): number {
  return (of.address() as { port: number }).port
}

beforeAll(async () => {
  server = createServer((_, response) => response.end('hello from outside'))
  other = createServer((_, response) => response.end('never to be seen'))
  for (const each of [server, other]) {
    each.listen(0, '127.0.0.1')
    await once(each, 'listening')
  }
})
afterAll(() => {
  for (const each of [server, other]) {
    each.closeAllConnections()
    each.close()
  }
})

async function said(sandbox: Sandbox, script: string | readonly string[]): Promise<string> {
  const { stdout, stderr } = await sandbox.exec(script)
  return stdout + stderr
}

await story('the network of a sandbox', { pool: 1 }, (at) => {
  const allowed = () => `127.0.0.1:${portOf(server)}`

  test('with none, nothing is reached and nothing listens', async () => {
    await using sandbox = await at.client.sandboxes.create({ from: at.image })
    expect(await said(sandbox, ask(allowed()))).toContain('Connection refused')
    const outside = await said(sandbox, OUTSIDE)
    expect(outside).not.toContain('reached')
    expect(outside).toContain('no names')
    expect(await said(sandbox, 'env')).not.toMatch(/proxy/i)
  })

  test('with allow, what is named is reached, and a refusal says how to allow the rest', async () => {
    const network = { allow: [allowed(), 'localhost', '*.example.org'] }
    await using sandbox = await at.client.sandboxes.create({ from: at.image, network })
    const answers = await said(sandbox, ask(allowed(), `127.0.0.1:${portOf(other)}`))
    expect(answers.split('\n').slice(0, 2)).toEqual([
      '200 hello from outside',
      'tunnel 200 hello from outside',
    ])
    expect(answers).toContain(`403 sandlot: 127.0.0.1:${portOf(other)} is not allowed`)
    expect(answers).toContain(`network: { allow: ['127.0.0.1:${portOf(other)}'] }`)
    expect(answers).not.toContain('never to be seen')
    for (const address of ['169.254.169.254', '10.0.0.1', '[::1]', 'example.org']) {
      expect(await said(sandbox, ask(address))).toMatch(/^403 .* is not allowed/)
    }
    expect(await said(sandbox, ask('localhost'))).toMatch(/^403 .*leads to .*private address/)
    expect(await said(sandbox, OUTSIDE)).not.toContain('reached')
    expect(await said(sandbox, 'env')).toContain('https_proxy=http://127.0.0.1:61080')
    await sandbox.stop()
    const ended = await Array.fromAsync(at.client.sandboxes.list({ state: 'stopped' }))
    const usage = ended.find(({ id }) => id === sandbox.id)?.usage
    expect(usage?.networkBytes).toBeGreaterThan(2 * 'hello from outside'.length)
  })

  test('one connection more than there may be is told so at once', async () => {
    const network = { allow: [allowed()] }
    await using sandbox = await at.client.sandboxes.create({ from: at.image, network })
    const full = python(`
import socket
open_ = [socket.create_connection(('127.0.0.1', 61080)) for _ in range(128)]
s = socket.create_connection(('127.0.0.1', 61080), 20)
s.sendall(b'CONNECT ${allowed()} HTTP/1.1\\r\\n\\r\\n')
print(s.recv(1000).decode())`)
    expect(await said(sandbox, full)).toMatch(/^HTTP\/1.1 503 Too many connections/)
    expect(await said(sandbox, ask(allowed()))).toContain('200 hello from outside')
  })

  test('after a crash of the daemon the policy still holds', async () => {
    const network = { allow: [allowed()] }
    const sandbox = await at.client.sandboxes.create({ from: at.image, network })
    await at.daemon.kill()
    await at.daemon.start()
    const answers = await said(sandbox, ask(allowed(), `127.0.0.1:${portOf(other)}`))
    expect(answers).toContain('200 hello from outside')
    expect(answers).toContain('is not allowed')
    await sandbox.stop()
  })

  test('each phase of a run has its own', async () => {
    const network = { setup: { allow: [allowed()] }, grade: { allow: [allowed()] } }
    const run = at.client.rollouts.map(
      [{ id: 1 }],
      async ({ sandbox }) => ({ data: await said(sandbox, ask(allowed())) }),
      {
        ...{ from: at.image, network },
        setup: [`${ask(allowed())} > /setup`],
        grade: {
          run: `grep -q '^200 hello' /setup && ${ask(allowed())} > /graded; grep '^200 hello' /graded`,
        },
      },
    )
    const [row] = await Array.fromAsync(run.results())
    expect(row).toMatchObject({ outcome: 'graded', reward: 1 })
    expect(row?.data).toMatch(/^403 .* is not allowed by the network policy of this sandbox/)
    expect(row?.usage.networkBytes).toBeGreaterThan(0)
  })
})
