import { once } from 'node:events'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import {
  gvisorPlaces,
  orphanSandboxes,
  pythonImage,
  temporaryDirectory,
  whyNoGvisor,
} from '@sandlot/testkit'
import { describe, expect, test } from 'vitest'
import { type DriverHarness, shell, shellSpec, specFor } from '../conformance/harness.ts'
import type { Sandbox } from '../driver.ts'
import { GvisorDriver } from './driver.ts'

const reason = await whyNoGvisor()
const PORT = 61_080

async function setup() {
  const places = await gvisorPlaces()
  const { options } = places
  const { layers } = await pythonImage()
  const driver = new GvisorDriver(options)
  return {
    driver,
    options,
    spec: () => specFor({ layers } as unknown as DriverHarness, { relayPort: PORT }),
    [Symbol.asyncDispose]: async () => {
      await driver[Symbol.asyncDispose]()
      await places[Symbol.asyncDispose]()
    },
  }
}

/** A Python program; prints what it is about. */
function python(text: string): string {
  return `python3 - <<'PYTHON'\nimport socket\nP = ${PORT}\n${text}\nPYTHON`
}

/** Says back in capital letters, and ends when the other side ends. */
function shout(connection: Duplex): void {
  connection.on('error', () => {})
  connection.on('data', (bytes) => connection.write(bytes.toString().toUpperCase()))
  connection.on('end', () => connection.end('BYE'))
}

const TALK = python(`
for family, host in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1')):
    s = socket.socket(family); s.connect((host, P))
    s.sendall(b'hello '); print(s.recv(100).decode(), end='')
    s.shutdown(socket.SHUT_WR)
    rest = b''
    while part := s.recv(65536): rest += part
    print(rest.decode())`)

async function talk(sandbox: Sandbox, world = 'main'): Promise<string> {
  const { stdout, stderr } = await shell(sandbox, TALK, { world })
  return stdout + stderr
}

describe.skipIf(reason !== '')(`the relay in gVisor${reason && `: ${reason}`}`, () => {
  test('connections of both loopback addresses and of both worlds come to the daemon', async () => {
    await using each = await setup()
    const sandbox = await each.driver.create(each.spec())
    sandbox.guest.relay.onConnection = shout
    expect(await talk(sandbox)).toBe('HELLO BYE\nHELLO BYE\n')
    await each.driver.openGradeWorld(sandbox, { world: 'grade', shows: 'main' })
    expect(await talk(sandbox, 'grade')).toBe('HELLO BYE\nHELLO BYE\n')
  })

  test('nothing inside can have the port, or a part of it', async () => {
    await using each = await setup()
    const sandbox = await each.driver.create(each.spec())
    const taken = await shell(
      sandbox,
      python(`
for family, host in ((2, '127.0.0.1'), (2, '0.0.0.0'), (10, '::1'), (10, '::')):
    for option in (None, socket.SO_REUSEADDR, socket.SO_REUSEPORT):
        s = socket.socket(family)
        if option: s.setsockopt(socket.SOL_SOCKET, option, 1)
        try:
            s.bind((host, P)); s.listen(); print('bound', host, option)
        except OSError: pass`),
    )
    expect(taken).toMatchObject({ stdout: '', stderr: '' })
  })

  test('much goes both ways, a slow reader loses nothing, a reset is told', async () => {
    await using each = await setup()
    const sandbox = await each.driver.create(each.spec())
    const came: Duplex[] = []
    sandbox.guest.relay.onConnection = (connection) => {
      came.push(connection)
      connection.on('error', () => {}).resume()
      connection.end(Buffer.alloc(8 * 2 ** 20, 'z'))
    }
    const slow = await shell(
      sandbox,
      python(`
s = socket.create_connection(('127.0.0.1', P)); s.shutdown(socket.SHUT_WR)
import time; time.sleep(0.3)
n = 0
while part := s.recv(65536): n += len(part)
print(n)`),
    )
    expect(slow.stdout + slow.stderr).toBe(`${8 * 2 ** 20}\n`)
    sandbox.guest.relay.onConnection = (connection) => {
      came.push(connection)
      connection.on('error', () => {}).resume()
    }
    const reset = python(`
import struct
s = socket.create_connection(('127.0.0.1', P)); s.sendall(b'x')
s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0)); s.close()`)
    expect(await shell(sandbox, reset)).toMatchObject({ exitCode: 0 })
    await expect.poll(() => came.map(({ destroyed }) => destroyed)).toEqual([true, true])
  })

  test('a connection that the daemon destroys is reset, and one that it never takes waits', async () => {
    await using each = await setup()
    const sandbox = await each.driver.create(each.spec())
    const first = Promise.withResolvers<Duplex>()
    sandbox.guest.relay.onConnection = (connection) => first.resolve(connection)
    const cut = shell(
      sandbox,
      python(`
s = socket.create_connection(('127.0.0.1', P)); s.sendall(b'x')
try: print(s.recv(1))
except ConnectionResetError: print('reset')`),
    )
    const connection = await first.promise
    // The process has sent what it had to send: it can only wait.
    await once(connection, 'data')
    connection.destroy()
    expect((await cut).stdout).toBe('reset\n')
    // More than are taken at once: the others have their turn when some have ended.
    sandbox.guest.relay.onConnection = shout
    const many = await shell(
      sandbox,
      python(`
all = [socket.create_connection(('127.0.0.1', P)) for _ in range(200)]
for s in all:
    s.sendall(b'a'); s.shutdown(socket.SHUT_WR)
    got = b''
    while part := s.recv(100): got += part
    assert got == b'ABYE', got
    s.close()
print('all')`),
    )
    expect(many.stdout + many.stderr).toBe('all\n')
  })

  test('the port outlives a daemon: connections wait for the next one', async () => {
    await using each = await setup()
    const [hostId] = await orphanSandboxes(each.options, [{ spec: each.spec() }])
    expect(hostId).toBeDefined()
    const { adopted } = await each.driver.recover()
    const [sandbox] = adopted
    if (!sandbox) throw new Error('not adopted')
    sandbox.guest.relay.onConnection = shout
    const talking = sandbox.guest.exec.start({ ...shellSpec(TALK), stdin: false, mode: 'buffered' })
    await talking.started
    await sandbox.guest.relay.listen(PORT)
    expect(await talking.result).toMatchObject({ exitCode: 0 })
    expect(await talk(sandbox)).toBe('HELLO BYE\nHELLO BYE\n')
    await expect(sandbox.guest.relay.listen(PORT + 1)).rejects.toMatchObject({ code: 'exists' })
  })

  test('without a relay nobody listens', async () => {
    await using each = await setup()
    const { relayPort: _, ...spec } = each.spec()
    const sandbox = await each.driver.create(spec)
    expect(await talk(sandbox)).toContain('ConnectionRefusedError')
  })

  test('a copy that was restored ahead has a relay where it is given one', async () => {
    await using each = await setup()
    await using directory = await temporaryDirectory()
    const { driver } = each
    const original = await driver.create({ ...each.spec(), checkpointable: true })
    const { layers, limits } = original.spec
    const checkpoint = { directory: join(directory.path, 'c'), layers, limits }
    await driver.checkpoint(original, checkpoint.directory, { leaveRunning: false })
    const [first, second] = [
      await driver.createBlank({ checkpoint }),
      await driver.createBlank({ checkpoint }),
    ]
    const { relayPort: _, ...without } = each.spec()
    const sandbox = await driver.checkout(first, each.spec())
    sandbox.guest.relay.onConnection = shout
    await sandbox.guest.relay.listen(PORT)
    expect(await talk(sandbox)).toBe('HELLO BYE\nHELLO BYE\n')
    expect(await talk(await driver.checkout(second, without))).toContain('ConnectionRefusedError')
  })
})
