import { access, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Sandbox } from 'sandlot'
import { expect, test } from 'vitest'
import { runCommand } from './harness/command.ts'
import { story } from './harness/story.ts'
import { OFTEN_MS, until } from './harness/until.ts'

/** Counts, and tells on a port of its loopback how far it is. */
const COUNTER = `
import socket, threading, time
n = 0
server = socket.create_server(('127.0.0.1', 8123))
def serve():
    while True:
        peer, _ = server.accept()
        peer.sendall(str(n).encode())
        peer.close()
threading.Thread(target=serve, daemon=True).start()
while True:
    n += 1
    time.sleep(0.01)
`
const ASK = `python3 -c "import socket; print(socket.create_connection(('127.0.0.1', 8123)).recv(99).decode())"`

await story('the memory of sandboxes', { pool: 1 }, (given) => {
  const counting = async (): Promise<Sandbox> => {
    const sandbox = await given.client.sandboxes.create({ from: given.image, checkpointable: true })
    await sandbox.files.write('/counter.py', COUNTER)
    await sandbox.exec('setsid python3 /counter.py > /dev/null 2>&1 &')
    await until('its counter answers', async () => (await count(sandbox)) > 0)
    return sandbox
  }
  const saved = () => readdir(join(given.daemon.dataDirectory, 'checkpoints'))

  test('a paused sandbox holds nothing, and goes on when it is resumed', async () => {
    const sandbox = await counting()
    expect(await sandbox.view()).toMatchObject({ origin: 'cold', checkpointable: true })
    const before = await count(sandbox)
    const streamed = sandbox.exec('echo begun; sleep 1000', { stream: true })
    const output = streamed[Symbol.asyncIterator]()
    expect((await output.next()).value?.text).toBe('begun\n')
    expect(await sandbox.pause()).toMatchObject({ state: 'paused' })
    await expect(output.next()).rejects.toMatchObject({ code: 'sandbox_paused' })
    expect(await given.daemon.livesOn(sandbox.id)).toBe(false)
    await expect(sandbox.exec('true')).rejects.toMatchObject({ code: 'sandbox_paused' })
    expect(await sandbox.pause()).toMatchObject({ state: 'paused' })
    const { environment } = given.daemon
    const resumed = await runCommand(['sandbox', 'resume', sandbox.id], { environment })
    expect(resumed).toMatchObject({ code: 0, stdout: `${sandbox.id} running\n` })
    expect(await count(sandbox)).toBeGreaterThanOrEqual(before)
    expect((await sandbox.execs()).filter(({ running }) => running)).toHaveLength(1)
    expect(await sandbox.view()).toMatchObject({ state: 'running', origin: 'restored' })
    expect(await sandbox.stop()).toMatchObject({ ending: { kind: 'stopped' } })
    expect(await saved()).toEqual([])
  })

  test('copies of it go on side by side, and so does it', async () => {
    const sandbox = await counting()
    const before = await count(sandbox)
    const copies = await sandbox.fork(3, { tags: { copy: 'yes' } })
    const ids = new Set<string>()
    for (const copy of copies) {
      if (!(copy instanceof Sandbox)) throw copy
      ids.add((await copy.exec('cat /etc/machine-id')).stdout)
      expect(await copy.view()).toMatchObject({ parent: sandbox.id, origin: 'restored' })
      const first = await count(copy)
      expect(first).toBeGreaterThanOrEqual(before)
      await until('it counts on', async () => (await count(copy)) > first)
    }
    expect(ids.size).toBe(3)
    await until('the original counts on', async () => (await count(sandbox)) > before)
    expect(await given.client.sandboxes.stopAll({ tags: { copy: 'yes' } })).toBe(3)
    await sandbox.stop()
    expect(await saved()).toEqual([])
  })

  test('a daemon that is killed loses none, whenever it is', async () => {
    const sandbox = await counting()
    const { daemon } = given
    const stands = async (): Promise<string> => (await sandbox.view()).state
    const killAt = async (moment: () => Promise<boolean>, work: Promise<unknown>) => {
      work.catch(() => {})
      await until('the moment to kill it', moment, { everyMs: OFTEN_MS })
      await daemon.kill()
      await daemon.start()
      expect(['running', 'paused']).toContain(await stands())
      // The client asks again once the daemon is back.
      await work.catch(() => {})
      await sandbox.resume()
      return await count(sandbox)
    }
    const saving = async () => (await saved()).some((name) => name.startsWith(sandbox.id))
    const whole = () =>
      access(join(daemon.dataDirectory, 'checkpoints', sandbox.id)).then(
        () => true,
        () => false,
      )
    const first = await killAt(saving, sandbox.pause())
    const second = await killAt(whole, sandbox.pause())
    expect(second).toBeGreaterThanOrEqual(first)
    await sandbox.pause()
    expect(await killAt(async () => true, Promise.resolve())).toBeGreaterThanOrEqual(second)
    await sandbox.pause()
    const ids = new Set(await daemon.hostIds())
    const begun = async () => (await daemon.hostIds()).some((id) => !ids.has(id))
    expect(await killAt(begun, sandbox.resume())).toBeGreaterThanOrEqual(second)
    await sandbox.stop()
    expect(await saved()).toEqual([])
  })

  test('what was not made for it is refused with what to do', async () => {
    await using sandbox = await given.client.sandboxes.create({ from: given.image })
    await expect(sandbox.pause()).rejects.toMatchObject({
      code: 'unsupported',
      hint: expect.stringContaining('checkpointable: true'),
    })
  })
})

async function count(sandbox: Sandbox): Promise<number> {
  const { exitCode, stdout } = await sandbox.exec(ASK)
  return exitCode === 0 ? Number(stdout) : 0
}
