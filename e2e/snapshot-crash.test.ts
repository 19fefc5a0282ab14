import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Image, Sandbox } from 'sandlot'
import { expect, test } from 'vitest'
import { story } from './harness/story.ts'
import { OFTEN_MS, until } from './harness/until.ts'

/** Holds so much that saving it takes a while, counts, and tells how far it is. */
const COUNTER = `
import os, time
block = os.urandom(1 << 20)
held = [bytearray(block) for _ in range(100)]
n = 0
while True:
    n += 1
    open('/count.next', 'w').write(str(n))
    os.rename('/count.next', '/count')
    time.sleep(0.01)
`
const MIB = 2 ** 20

await story('a daemon that is killed while it saves', { pool: 1 }, (given) => {
  const saved = () => readdir(join(given.daemon.dataDirectory, 'checkpoints'))
  const count = async (sandbox: Sandbox) => Number((await sandbox.exec('cat /count')).stdout)
  const counting = async (): Promise<Sandbox> => {
    const sandbox = await given.client.sandboxes.create({ from: given.image, checkpointable: true })
    await sandbox.files.write('/counter.py', COUNTER)
    await sandbox.exec('setsid python3 /counter.py > /dev/null 2>&1 &')
    await until('it counts', async () => (await count(sandbox)) > 0)
    // Files that take a while too.
    await sandbox.exec('head -c 50000000 /dev/urandom > /large')
    return sandbox
  }

  /** A request that nobody repeats when its daemon dies. */
  const askOnce = (path: string, json: object): Promise<unknown> =>
    fetch(given.daemon.url + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${given.daemon.apiKey}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify(json),
    })
      .then((response) => response.text())
      .catch(() => undefined)

  const writing = async () => {
    const tmp = join(given.daemon.dataDirectory, 'images', 'tmp')
    for (const name of await readdir(tmp)) {
      const file = await stat(join(tmp, name, 'difference.erofs')).catch(() => undefined)
      if (file && file.size > MIB) return true
    }
    return false
  }
  const saving = async () => {
    for (const name of await saved()) {
      if (!name.endsWith('.part')) continue
      const path = join(given.daemon.dataDirectory, 'checkpoints', name, 'pages.img')
      const file = await stat(path).catch(() => undefined)
      if (file && file.size > MIB) return true
    }
    return false
  }
  /** A sandbox of somebody's that was not there. */
  const starting = async () => {
    const before = new Set(await given.daemon.ownedIds())
    return async () => (await given.daemon.ownedIds()).some((id) => !before.has(id))
  }
  /** Kills the daemon at a moment of a piece of work, and starts the next one. */
  const strike = async (at: () => Promise<boolean>, work: Promise<unknown>) => {
    await until('the moment to kill it', at, { everyMs: OFTEN_MS })
    await given.daemon.kill()
    await given.daemon.start()
    await work
  }
  const listed = async () => ({
    snapshots: (await Array.fromAsync(given.client.snapshots.list())).map(({ id }) => id),
    templates: (await Array.fromAsync(given.client.templates.list())).map(({ id }) => id),
    sandboxes: (await Array.fromAsync(given.client.sandboxes.list())).map(({ id }) => id),
  })
  /** It is as if nobody had asked for anything, and goes on. */
  const expectUntouched = async (sandbox: Sandbox, before: number) => {
    expect(await listed()).toEqual({ snapshots: [], templates: [], sandboxes: [sandbox.id] })
    expect(await saved()).toEqual([])
    const now = await count(sandbox)
    expect(now).toBeGreaterThanOrEqual(before)
    await until('it counts on', async () => (await count(sandbox)) > now)
    expect((await sandbox.view()).state).toBe('running')
  }

  test('files, leaves none of it', async () => {
    await using sandbox = await counting()
    const before = await count(sandbox)
    const json = { kind: 'filesystem', name: 'struck' }
    await strike(writing, askOnce(`/v1/sandboxes/${sandbox.id}/snapshots`, json))
    await expectUntouched(sandbox, before)
  })

  test('memory, in each of its phases, leaves none of it', async () => {
    await using sandbox = await counting()
    const json = { kind: 'memory', name: 'struck' }
    for (const moment of [writing, saving, await starting()]) {
      const before = await count(sandbox)
      await strike(moment, askOnce(`/v1/sandboxes/${sandbox.id}/snapshots`, json))
      await expectUntouched(sandbox, before)
    }
    for (const moment of [saving, await starting()]) {
      const taking = sandbox.snapshot({ kind: 'memory', name: 'struck' })
      await strike(moment, taking)
      const snapshot = await taking
      expect((await listed()).snapshots).toEqual([snapshot.id])
      expect(await saved()).toHaveLength(1)
      await using copy = await given.client.sandboxes.create({ from: snapshot })
      expect(await count(copy)).toBeGreaterThan(0)
      await given.client.snapshots.delete(snapshot.id, { force: true })
    }
  })

  test('for a fork, leaves whole copies alone', async () => {
    await using sandbox = await counting()
    for (const moment of [saving, await starting()]) {
      const before = await count(sandbox)
      await strike(moment, askOnce(`/v1/sandboxes/${sandbox.id}/fork`, { count: 3 }))
      const copies = (await listed()).sandboxes.filter((id) => id !== sandbox.id)
      for (const id of copies) {
        const copy = await given.client.sandboxes.get(id)
        expect(await copy.view()).toMatchObject({ state: 'running', parent: sandbox.id })
        const now = await count(copy)
        await until('it counts on', async () => (await count(copy)) > now)
        await copy.stop()
      }
      await expectUntouched(sandbox, before)
    }
    const forking = sandbox.fork(3)
    await strike(await starting(), forking)
    const copies = await forking
    expect(copies.map((copy) => copy instanceof Sandbox)).toEqual([true, true, true])
    expect((await listed()).sandboxes).toHaveLength(4)
    for (const copy of copies as Sandbox[]) {
      expect(await count(copy)).toBeGreaterThan(0)
      await copy.stop()
    }
    expect(await saved()).toEqual([])
  })

  test('for a template, leaves nothing but steps that are done', async () => {
    let asked = 0
    const prepare = () => {
      asked += 1
      return given.client.prepare({
        ...{ from: Image.fromId(given.image), network: 'none', snapshot: 'memory' },
        setup: [`echo ${Date.now()} ${asked} > /step; sleep 2`],
        start: `exec python3 -c "import os, time; b = os.urandom(200 << 20); open('/up', 'w'); time.sleep(1e6)"`,
        ready: { command: 'test -e /up' },
        resources: { memory: { request: '64MiB', limit: '1GiB' } },
      })
    }
    const up = async () => {
      const before = new Set(await given.daemon.ownedIds())
      let seen = 0
      return async () => {
        const fresh = (await given.daemon.ownedIds()).filter((id) => !before.has(id))
        for (const id of fresh) before.add(id)
        seen += fresh.length
        // First the sandbox of the step, then that of the memory.
        return seen > 1
      }
    }
    for (const moment of [await starting(), await up(), saving]) {
      const preparing = prepare()
      preparing.catch(() => {})
      await until('the moment to kill it', moment, { everyMs: OFTEN_MS })
      await given.daemon.kill()
      await given.daemon.start()
      // A build's lines come over a connection that is lost, so its caller is told.
      const template = await preparing.catch((error) => {
        expect(error).toMatchObject({ code: 'connection_lost' })
      })
      if (template) await given.client.templates.delete(template.id)
      expect(await listed()).toEqual({ snapshots: [], templates: [], sandboxes: [] })
      expect(await saved()).toEqual([])
    }
    const template = await prepare()
    await using sandbox = await given.client.sandboxes.create({ from: template })
    expect((await sandbox.exec('cat /step; ls /up')).exitCode).toBe(0)
    await given.client.templates.delete(template.id)
  })
})
