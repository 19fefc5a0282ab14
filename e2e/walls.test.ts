import { readFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import type { Sandbox } from 'sandlot'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { python } from './harness/shells.ts'
import { story } from './harness/story.ts'

const REACHES = python(`
import socket
targets = {
    'a public address': ('1.1.1.1', 53), 'metadata': ('169.254.169.254', 80),
    'a private range': ('10.0.0.1', 80), 'the host': ('172.17.0.1', 22), 'IPv6': ('2606:4700::1111', 53),
}
for name, (address, port) in targets.items():
    family = socket.AF_INET6 if ':' in address else socket.AF_INET
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        s = socket.socket(family, kind)
        s.settimeout(2)
        try:
            s.connect((address, port)); s.send(b'x'); print(name, kind)
        except OSError: pass
try: print('name', socket.getaddrinfo('example.org', 80))
except OSError: pass
import os
print('interfaces', sorted(os.listdir('/sys/class/net')) if os.path.isdir('/sys/class/net') else [n for _, n in socket.if_nameindex()])
server = socket.create_server(('127.0.0.1', 0))
client = socket.create_connection(server.getsockname(), timeout=5)
client.send(b'loopback'); print(server.accept()[0].recv(100).decode())
`)

/** Everything that a curious process can read of where it is. */
const SPIES = python(`
import os
paths = [f'/proc/{p}/{f}' for p in os.listdir('/proc') if p.isdigit() or p == 'self'
         for f in ('environ', 'cmdline', 'mountinfo', 'cgroup', 'comm', 'status', 'maps', 'net/unix', 'net/tcp')]
paths += ['/proc/cmdline', '/proc/version', '/proc/mounts', '/proc/gvisor/spec_environ', '/etc/hosts', '/etc/hostname',
          '/etc/resolv.conf', '/etc/mtab', '/proc/sys/kernel/hostname', '/proc/sys/kernel/random/boot_id', '/sys/class/dmi/id/product_uuid']
for path in paths:
    try: text = open(path, 'rb').read(65536).replace(b'\\0', b' ').decode('latin1')
    except OSError: continue
    print('==', path); print(text)
for p in os.listdir('/proc'):
    if not p.isdigit(): continue
    try:
        for f in os.listdir(f'/proc/{p}/fd'): print('fd', p, f, os.readlink(f'/proc/{p}/fd/{f}'))
    except OSError: pass
print(os.environ)
print(os.uname())
`)

await story(
  'the walls of a sandbox',
  { pool: 1, environment: { PASSING_SECRET: 'hunter2' } },
  (given) => {
    let sandbox: Sandbox
    let neighbour: Sandbox
    beforeAll(async () => {
      const create = () => given.client.sandboxes.create({ from: given.image, env: { OWN: 'yes' } })
      ;[sandbox, neighbour] = await Promise.all([create(), create()])
    })
    afterAll(async () => {
      await Promise.all([sandbox.stop(), neighbour.stop()])
    })

    test('let nothing out: no address, no name, but loopback', async () => {
      const end = await sandbox.exec(REACHES, { timeout: '60s' })
      expect(end).toMatchObject({ exitCode: 0, stdout: "interfaces ['lo']\nloopback\n" })
    })

    test('show nothing of the host, of neighbours or of keys', async () => {
      const { stdout } = await sandbox.exec(SPIES)
      expect(stdout).toContain('== /proc/self/environ')
      expect(stdout).toContain('OWN')
      const key = (await readFile(`${given.daemon.dataDirectory}/key`, 'utf8')).trim()
      const secrets = {
        key,
        'the environment of the daemon': 'hunter2',
        'the data directory': given.daemon.dataDirectory,
        'the run directory': given.daemon.runDirectory,
        'the neighbour': neighbour.id,
        'the own id': sandbox.id,
        'the host': ` ${hostname()} `,
      }
      const shown = Object.entries(secrets).flatMap(([name, secret]) =>
        stdout.includes(secret) ? [name] : [],
      )
      expect(shown).toEqual([])
      // Among thousands of addresses and sizes any number may be, so they are left out.
      const files = stdout.split(/^== /m).filter((text) => !/^\S+\/(maps|status)\n/.test(text))
      const { port } = new URL(given.daemon.url)
      const hexPort = Number(port).toString(16).padStart(4, '0')
      expect(files.join('')).not.toMatch(new RegExp(`\\b${port}\\b|:${hexPort}\\b`, 'i'))
    })

    test('show no process but the own ones, and none of them is the agent', async () => {
      const { stdout } = await sandbox.exec(
        python(
          "import os\nfor p in sorted(filter(str.isdigit, os.listdir('/proc')), key=int): print(p, open(f'/proc/{p}/comm').read().strip())",
        ),
      )
      const [first, ...rest] = stdout.trim().split('\n')
      expect(first).toMatch(/^1 /)
      expect(rest.map((line) => line.split(' ')[1])).toEqual(['python3'])
      const signalled = await sandbox.exec(
        'for s in TERM INT HUP QUIT STOP SEGV ABRT; do kill -$s 1; done; echo on',
      )
      expect(signalled).toMatchObject({ stdout: 'on\n' })
      expect(await sandbox.exec('echo still')).toMatchObject({ stdout: 'still\n' })
    })

    test('keep what one writes from the other', async () => {
      await sandbox.exec('echo mine >/tmp/mine; echo mine >/dev/shm/mine; echo x >>/etc/passwd')
      const other = await neighbour.exec('ls /tmp /dev/shm; tail -1 /etc/passwd')
      expect(other.stdout).not.toContain('mine')
      expect(other.stdout).not.toMatch(/^x$/m)
    })

    test('count the processors, memory and disk that were asked for as the machine', async () => {
      await using small = await given.client.sandboxes.create({
        from: given.image,
        resources: { cpu: 1, memory: '192MiB', disk: '32MiB', pids: 32 },
      })
      const { stdout } = await small.exec(
        'nproc; grep MemTotal /proc/meminfo; df -m --output=size / | tail -1; hostname',
      )
      const [processors, memory, disk, name] = stdout.trim().split('\n')
      expect(processors).toBe('1')
      expect(memory).toMatch(/MemTotal: +196608 kB/)
      expect(Number(disk)).toBe(32)
      expect(name).toBe('sandlot')
    })
  },
)
