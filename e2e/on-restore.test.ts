import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Image, Sandbox, type SandlotError } from 'sandlot'
import { expect, test } from 'vitest'
import { runCommand } from './harness/command.ts'
import { story } from './harness/story.ts'
import { until } from './harness/until.ts'

/** Draws a number, and another one whenever it is told to, by the seed of the sandbox that it is in. */
const DRAWER = `
import os, random, signal
def draw():
    random.seed(open('/dev/sandlot-seed').read())
    open('/drawn', 'w').write(str(random.getrandbits(64)))
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
open('/pid', 'w').write(str(os.getpid()))
while True:
    draw()
    signal.sigwait([signal.SIGUSR1])
`
const DRAW_AGAIN = 'rm /drawn; kill -USR1 $(cat /pid); until test -s /drawn; do sleep 0.01; done'

await story('a command that runs in each copy', { pool: 1 }, (given) => {
  const saved = () => readdir(join(given.daemon.dataDirectory, 'checkpoints'))
  const drawn = async (sandbox: Sandbox) => (await sandbox.exec('cat /drawn')).stdout
  const drawing = async (): Promise<Sandbox> => {
    const sandbox = await given.client.sandboxes.create({
      ...{ from: given.image, checkpointable: true, env: { WHO: 'original' } },
      resources: { memory: { request: '64MiB', limit: '256MiB' } },
    })
    await sandbox.files.write('/drawer.py', DRAWER)
    await sandbox.exec('setsid python3 /drawer.py > /dev/null 2>&1 &')
    await until('it has drawn', async () => (await drawn(sandbox)) !== '')
    return sandbox
  }

  test('is over before anybody has the copy, and its doing is there', async () => {
    const sandbox = await drawing()
    const onRestore = { command: `${DRAW_AGAIN}; echo $WHO $EXTRA > /who`, env: { EXTRA: 'more' } }
    const snapshot = await sandbox.snapshot({ kind: 'memory', onRestore })
    expect(snapshot.onRestore).toEqual(onRestore)
    const from = { from: snapshot }
    const copies = await Promise.all([
      given.client.sandboxes.create({ ...from, env: { WHO: 'one' } }),
      given.client.sandboxes.create(from),
    ])
    const all = new Set([await drawn(sandbox)])
    for (const copy of copies) all.add(await drawn(copy))
    expect(all.size).toBe(3)
    const who = async (copy: Sandbox) => (await copy.exec('cat /who')).stdout
    expect(await Promise.all(copies.map(who))).toEqual(['one more\n', 'original more\n'])
    expect(JSON.stringify(await copies[0].execs())).not.toContain('USR1')
    await copies[0].exec('rm /who')
    await copies[0].pause()
    await copies[0].resume()
    expect((await copies[0].exec('ls /who')).exitCode).not.toBe(0)
    const rows = await given.client.rollouts
      .map([{ id: 'a' }, { id: 'b' }], async ({ sandbox: own }) => ({ data: await drawn(own) }), {
        ...{ ...from, concurrency: 2, grade: { run: 'test -s /who' } },
      })
      .wait()
    expect(rows.map(({ reward }) => reward)).toEqual([1, 1])
    for (const { data } of rows) all.add(data as string)
    expect(all.size).toBe(5)
    for (const copy of copies) await copy.stop()
    await given.client.snapshots.delete(snapshot.id)
    await sandbox.stop()
  })

  test('that fails is found when the memory is saved, and fails the copies that it fails in', async () => {
    const sandbox = await drawing()
    const before = await given.daemon.ownedIds()
    const bad = sandbox.snapshot({
      ...{ kind: 'memory', onRestore: 'echo begun; echo no such thing >&2; exit 3' },
    })
    await expect(bad).rejects.toMatchObject({
      code: 'on_restore_failed',
      fault: 'caller',
      message: expect.stringContaining('exited with 3: no such thing'),
      details: { exitCode: 3, stdout: 'begun\n', stderr: 'no such thing\n' },
    })
    const late = sandbox.snapshot({
      ...{ kind: 'memory', onRestore: { command: 'echo waits; sleep 100', timeout: '5s' } },
    })
    await expect(late).rejects.toMatchObject({
      message: expect.stringContaining('did not end in 5s: waits'),
    })
    const hungry = sandbox.snapshot({
      ...{ kind: 'memory', onRestore: ['python3', '-c', 'b = bytes([1]) * 2 ** 30'] },
    })
    await expect(hungry).rejects.toMatchObject({
      code: 'on_restore_failed',
      message: expect.stringContaining('oom_limit'),
    })
    expect(await saved()).toEqual([])
    expect(await Array.fromAsync(given.client.snapshots.list())).toEqual([])
    // Of four copies those with an even seed are none.
    const onRestore = 'case $(cat /dev/sandlot-seed) in *[02468ace]) exit 1;; esac'
    const copies = await sandbox.fork(4, { onRestore })
    const whole = copies.filter((copy) => copy instanceof Sandbox)
    for (const failed of copies.filter((copy) => !(copy instanceof Sandbox))) {
      expect((failed as SandlotError).code).toBe('on_restore_failed')
    }
    expect(await given.daemon.ownedIds()).toHaveLength(before.length + whole.length)
    for (const copy of whole) await (copy as Sandbox).stop()
    expect(await saved()).toEqual([])
    const { environment } = given.daemon
    const fork = ['sandbox', 'fork', sandbox.id, '--on-restore', 'echo cli > /cli']
    const forked = await runCommand(fork, { environment })
    const copy = await given.client.sandboxes.get(forked.stdout.trim())
    expect(await copy.files.readText('/cli')).toBe('cli\n')
    await copy.stop()
    await sandbox.stop()
  })

  test('belongs to a template with its memory', async () => {
    const prepare = async (onRestore?: string) =>
      await given.client.prepare({
        ...{
          from: Image.fromId(given.image),
          snapshot: 'memory',
          start: 'echo $$ > /pid; exec sleep 1000',
          ready: { command: 'test -s /pid' },
        },
        ...(onRestore === undefined ? {} : { onRestore }),
      })
    const template = await prepare('kill -0 $(cat /pid) && echo alive > /found')
    expect((await prepare()).id).not.toBe(template.id)
    await using sandbox = await given.client.sandboxes.create({ from: template })
    expect(await sandbox.files.readText('/found')).toBe('alive\n')
    await expect(prepare('exit 9')).rejects.toMatchObject({ code: 'on_restore_failed' })
    for (const { id } of await Array.fromAsync(given.client.templates.list())) {
      await given.client.templates.delete(id)
    }
  })

  test('that a killed daemon did not see through is nobody’s sandbox', async () => {
    const sandbox = await drawing()
    const ids = new Set(await given.daemon.hostIds())
    const forking = sandbox.fork(1, { onRestore: 'touch /waits; sleep 3; test -e /waits' })
    forking.catch(() => {})
    const begun = async () => (await given.daemon.ownedIds()).some((id) => !ids.has(id))
    await until('the copy lives', begun)
    await given.daemon.kill()
    await given.daemon.start()
    // The client asks again, and gets one in which it ran.
    const [copy] = await forking
    expect(copy).toBeInstanceOf(Sandbox)
    const listed = await Array.fromAsync(given.client.sandboxes.list())
    expect(listed.map(({ id }) => id).sort()).toEqual([sandbox.id, (copy as Sandbox).id].sort())
    expect(await drawn(sandbox)).not.toBe('')
    await (copy as Sandbox).stop()
    await sandbox.stop()
    expect(await saved()).toEqual([])
  })
})
