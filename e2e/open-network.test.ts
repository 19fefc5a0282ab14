import { readdirSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { pythonImage, temporaryDirectory, whyNoGvisor } from '@sandlot/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { RealDaemon } from './harness/daemon.ts'
import { Internet, MACHINE, OUTSIDE, PORTS } from './harness/internet/internet.ts'
import { python } from './harness/shells.ts'
import { until } from './harness/until.ts'

const commandLine = fileURLToPath(new URL('../packages/cli/src/main.ts', import.meta.url))

/** Tells which of the addresses answer, by TCP and by UDP. So long each has for it; those of `patient` have a minute. */
const LOOK = (addresses: readonly string[], patient: readonly string[], port: number) => `
import json, os, socket, threading, time
patient = ${JSON.stringify(patient)}
def look():
    answers = {}
    seconds = lambda host: 60 if host in patient else 3
    def tcp(host):
        try:
            with socket.create_connection((host, ${port}), seconds(host)) as s: answers[f'tcp {host}'] = s.recv(100).decode()
        except OSError: pass
    def udp(host):
        try:
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(seconds(host))
            s.sendto(b'ping', (host, ${PORTS.udp})); answers[f'udp {host}'] = s.recv(100).decode()
        except OSError: pass
    threads = [threading.Thread(target=f, args=(host,)) for host in ${JSON.stringify(addresses)} for f in (tcp, udp)]
    [t.start() for t in threads]; [t.join() for t in threads]
    return answers`

/** Prints it, where `expected` of them should. */
function reach(
  addresses: readonly string[],
  expected: readonly string[] = [],
  port: number = PORTS.tcp,
): readonly string[] {
  return python(`${LOOK(addresses, expected, port)}\nprint(json.dumps(look()))`)
}

/** Looks again and again until there is a file, and prints each look with when it was. */
function reachUntil(file: string, addresses: readonly string[]): readonly string[] {
  return python(`${LOOK(addresses, [], PORTS.tcp)}
while not os.path.exists('${file}'):
    began = time.time() * 1000
    answers = look()
    print(json.dumps({'fromMs': began, 'untilMs': time.time() * 1000, 'answers': answers}), flush=True)`)
}

/** So far are the clocks of machine and sandbox apart at the most. */
const CLOCKS_MS = 50

interface Look {
  readonly fromMs: number
  readonly untilMs: number
  readonly answers: Record<string, string>
}

const OWN_ADDRESS = python(`
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(('${OUTSIDE.public}', 9)); print(s.getsockname()[0])`)

/** Listens on every address, and returns when it does. */
const SERVE = python(`
import os, socket
s = socket.socket(); s.bind(('0.0.0.0', ${PORTS.tcp})); s.listen()
if os.fork() == 0:
    os.setsid()
    for fd in (0, 1, 2): os.close(fd)
    while True: s.accept()[0].sendall(b'never to be seen')
print(socket.create_connection(('127.0.0.1', ${PORTS.tcp}), 60).recv(100).decode())`)

const NAMES = python(`
import socket
print(socket.getaddrinfo('anything.example', 80, socket.AF_INET)[0][4][0])
print(open('/etc/resolv.conf').read())
try: socket.create_connection(('2001:db8::1', 80), 2); print('reached')
except OSError: print('no IPv6')`)

const lacking = await whyNoGvisor()

describe.runIf(lacking === '')('a sandbox with an interface of its own', () => {
  let internet: Internet
  let daemon: RealDaemon
  let image: string

  beforeAll(async () => {
    image = (await pythonImage()).id
    internet = await Internet.open()
    const environment = { SANDLOT_OPEN_NAME_SERVERS: OUTSIDE.nameServer }
    const networkNamespace = internet.machine
    daemon = await RealDaemon.start({ pool: 0, networkNamespace, environment })
  })
  afterAll(async () => {
    await daemon?.close()
    const tables = await internet?.run(['nft', 'list', 'tables'])
    await internet?.close()
    expect(readdirSync('/run/netns').filter((name) => name.startsWith('sandlot-'))).toEqual([])
    expect(tables).not.toContain('sandlot')
  })

  async function sandlot(...argv: string[]): Promise<string> {
    const node = [process.execPath, '--disable-warning=ExperimentalWarning', commandLine]
    return (await internet.run([...node, ...argv], daemon.environment)).trim()
  }
  async function create(...options: string[]): Promise<string> {
    return await sandlot('sandbox', 'create', '--from', image, '--open-network', ...options)
  }
  async function said(id: string, command: readonly string[]): Promise<string> {
    return await sandlot('sandbox', 'exec', id, '--', ...command)
  }

  test('reaches public addresses by TCP, UDP and by name, and no other', async () => {
    const id = await create()
    const everywhere = [
      OUTSIDE.public,
      ...OUTSIDE.assigned,
      ...OUTSIDE.nowhere,
      ...MACHINE,
      '100.121.0.1',
    ]
    // They are there for whoever may reach them: the machine itself.
    const outside = [OUTSIDE.public, ...OUTSIDE.assigned]
    const seen = JSON.parse(await internet.run(reach(outside, outside)))
    expect(Object.keys(seen)).toHaveLength(2 * (1 + OUTSIDE.assigned.length))
    expect(JSON.parse(await said(id, reach(everywhere, [OUTSIDE.public])))).toEqual({
      [`tcp ${OUTSIDE.public}`]: `hello ${MACHINE[0]}`,
      [`udp ${OUTSIDE.public}`]: `hello ping ${MACHINE[0]}`,
    })
    const names = await said(id, NAMES)
    expect(names).toContain(OUTSIDE.public)
    expect(names).toContain(`nameserver ${OUTSIDE.nameServer}`)
    expect(names).toContain('no IPv6')
    expect(await said(id, ['sh', '-c', 'env'])).not.toMatch(/proxy/i)
    const refused = await until('it is in its log', async () => {
      const log = await sandlot('sandbox', 'network', 'log', id, '--json')
      return log.includes(`169.254.169.254:${PORTS.tcp}`) && log.includes(MACHINE[0]) && log
    })
    expect(refused).toContain('private_address')
    expect(refused).not.toContain(OUTSIDE.public)
    const { usage, network, origin } = JSON.parse(await sandlot('sandbox', 'show', id))
    expect(usage.networkBytes).toBeGreaterThan(500)
    expect(network.allows.agent).toBe('open')
    expect(origin).toBe('cold')
    await sandlot('sandbox', 'stop', id)
    expect(namespaces()).toEqual([])
  })

  test('reaches neither the daemon’s API, by any address, nor another sandbox; nor is it reached', async () => {
    const [one, other] = await Promise.all([create(), create()])
    const port = Number(new URL(daemon.url).port)
    expect(
      JSON.parse(await said(one, reach(['127.0.0.1', ...MACHINE, '100.121.0.1'], [], port))),
    ).toEqual({})
    const address = await said(other, OWN_ADDRESS)
    expect(address).toMatch(/^100\.121\./)
    expect(await said(other, SERVE)).toBe('never to be seen')
    expect(JSON.parse(await said(one, reach([address])))).toEqual({})
    expect(JSON.parse(await internet.run(reach([address])))).toEqual({})
    await Promise.all([one, other].map((id) => sandlot('sandbox', 'stop', id)))
  })

  test('is refused by name what it can’t be', async () => {
    const refused = (options: string[]) => create(...options).then(String, ({ stderr }) => stderr)
    expect(await refused(['--checkpointable'])).toMatch(/interface of its own/)
    expect(await refused(['--allow', 'a.example'])).toMatch(/--open-network/)
  })

  test('rules that somebody takes away are back by themselves; meanwhile it reaches nothing', async () => {
    const [id, other] = await Promise.all([create(), create()])
    const address = await said(other, OWN_ADDRESS)
    expect(await said(other, SERVE)).toBe('never to be seen')
    const areThere = async () =>
      (await internet.run(['nft', 'list', 'tables'])).includes('sandlot_')
    const everywhere = [OUTSIDE.public, ...OUTSIDE.assigned, ...MACHINE, address]
    /** Takes them away, and resolves once they are back. */
    const takeAway = async () => {
      await internet.run(['nft', 'flush', 'ruleset'])
      const fromMs = Date.now()
      let untilMs = fromMs
      await until('the rules are back', async () => {
        const lookedAtMs = Date.now()
        if (await areThere()) return true
        untilMs = lookedAtMs
        return false
      })
      return { fromMs, untilMs }
    }
    await using directory = await temporaryDirectory()
    for (let n = 1; ; n++) {
      const mark = join(directory.path, `over-${n}`)
      const looking = Promise.all([
        said(id, reachUntil(`/over-${n}`, everywhere)),
        internet.run(reachUntil(mark, [address])),
      ])
      // The second time they are away for as long as ever: they were looked for just before.
      const away = [await takeAway(), await takeAway()]
      await Promise.all([said(id, ['touch', `/over-${n}`]), writeFile(mark, '')])
      const whole = (await looking).map((lines) =>
        lines
          .split('\n')
          .filter((line) => line !== '')
          .map((line) => JSON.parse(line) as Look)
          .filter((look) =>
            away.some(
              ({ fromMs, untilMs }) =>
                look.fromMs > fromMs + CLOCKS_MS && look.untilMs < untilMs - CLOCKS_MS,
            ),
          ),
      )
      for (const { answers } of whole.flat()) expect(answers).toEqual({})
      // Only looks count that were wholly without them.
      if (whole.every((looks) => looks.length > 0)) break
    }
    const reached = await said(
      id,
      reach([OUTSIDE.public, '10.9.0.1', ...MACHINE], [OUTSIDE.public]),
    )
    expect(JSON.parse(reached)).toEqual({
      [`tcp ${OUTSIDE.public}`]: `hello ${MACHINE[0]}`,
      [`udp ${OUTSIDE.public}`]: `hello ping ${MACHINE[0]}`,
    })
    await Promise.all([id, other].map((each) => sandlot('sandbox', 'stop', each)))
  })

  test('doctor says what is missing', async () => {
    const forward = (on: 0 | 1) =>
      internet.run(['sh', '-c', `echo ${on} > /proc/sys/net/ipv4/ip_forward`])
    await forward(0)
    const found = await sandlot('doctor').catch(({ stdout }) => stdout)
    await forward(1)
    expect(found).toContain('open network: sysctl -w net.ipv4.ip_forward=1')
  })

  test('after a kill of the daemon it reaches on, and goes with its namespace', async () => {
    const [kept, lost] = await Promise.all([create(), create()])
    await daemon.kill()
    await daemon.start()
    const reached = await said(
      kept,
      reach([OUTSIDE.public, '10.9.0.1', ...MACHINE], [OUTSIDE.public]),
    )
    expect(JSON.parse(reached)).toEqual({
      [`tcp ${OUTSIDE.public}`]: `hello ${MACHINE[0]}`,
      [`udp ${OUTSIDE.public}`]: `hello ping ${MACHINE[0]}`,
    })
    await daemon.kill()
    await daemon.killSandbox(lost)
    await daemon.start()
    expect(namespaces()).toHaveLength(1)
    await sandlot('sandbox', 'stop', kept)
    expect(namespaces()).toEqual([])
  })
})

/** Those of sandboxes; the machine's other daemons have none with such an interface. */
function namespaces(): readonly string[] {
  return readdirSync('/run/netns').filter((name) => /^sandlot-\w+-\w{16}$/.test(name))
}

if (lacking !== '') test.skip(`skipped: ${lacking}`, () => {})
