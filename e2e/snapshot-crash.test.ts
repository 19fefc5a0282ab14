import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Image, Sandbox } from 'sandlot'
import { expect, test } from 'vitest'
import { story } from './harness/story.ts'
import { watched } from './harness/under-way.ts'
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

  const writing = async () => isWriting
  const isWriting = async () => {
    const tmp = join(given.daemon.dataDirectory, 'images', 'tmp')
    for (const name of await readdir(tmp)) {
      const file = await stat(join(tmp, name, 'difference.erofs')).catch(() => undefined)
      if (file && file.size > MIB) return true
    }
    return false
  }
  const saving = async () => isSaving
  const isSaving = async () => {
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
  /** Takes away what there is, but for one sandbox. */
  const clear = async (kept?: Sandbox) => {
    const { client } = given
    for await (const { id } of client.templates.list()) await client.templates.delete(id)
    for await (const { id } of client.snapshots.list()) {
      await client.snapshots.delete(id, { force: true })
    }
    for await (const { id } of client.sandboxes.list()) {
      if (id !== kept?.id) await (await client.sandboxes.get(id)).stop()
    }
  }
  /**
   * Kills the daemon in the midst of a piece of work, and starts the next one. The work is begun anew where it was over before: whoever
   * looks and kills may stand still for longer than it takes.
   */
  const strike = async <T>(
    moment: () => Promise<() => Promise<boolean>>,
    begin: () => Promise<T>,
    kept?: Sandbox,
  ): Promise<{ readonly work: Promise<T> }> => {
    for (;;) {
      const isNow = await moment()
      const work = begin()
      const isOver = watched(work)
      await until('the moment to kill it', async () => (await isNow()) || isOver(), {
        everyMs: OFTEN_MS,
      })
      await given.daemon.kill()
      // What a dead daemon left says how far it was.
      const isStruck = await isNow()
      await given.daemon.start()
      if (isStruck) return { work }
      await work.catch(() => {})
      await clear(kept)
    }
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
    const ask = () => askOnce(`/v1/sandboxes/${sandbox.id}/snapshots`, json)
    await (await strike(writing, ask, sandbox)).work
    await expectUntouched(sandbox, before)
  })

  test('memory, in each of its phases, leaves none of it', async () => {
    await using sandbox = await counting()
    const json = { kind: 'memory', name: 'struck' }
    for (const moment of [writing, saving, starting]) {
      const before = await count(sandbox)
      const ask = () => askOnce(`/v1/sandboxes/${sandbox.id}/snapshots`, json)
      await (await strike(moment, ask, sandbox)).work
      await expectUntouched(sandbox, before)
    }
    for (const moment of [saving, starting]) {
      const take = () => sandbox.snapshot({ kind: 'memory', name: 'struck' })
      const snapshot = await (await strike(moment, take, sandbox)).work
      expect((await listed()).snapshots).toEqual([snapshot.id])
      expect(await saved()).toHaveLength(1)
      await using copy = await given.client.sandboxes.create({ from: snapshot })
      expect(await count(copy)).toBeGreaterThan(0)
      await given.client.snapshots.delete(snapshot.id, { force: true })
    }
  })

  test('for a fork, leaves whole copies alone', async () => {
    await using sandbox = await counting()
    for (const moment of [saving, starting]) {
      const before = await count(sandbox)
      const ask = () => askOnce(`/v1/sandboxes/${sandbox.id}/fork`, { count: 3 })
      await (await strike(moment, ask, sandbox)).work
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
    const copies = await (await strike(starting, () => sandbox.fork(3), sandbox)).work
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
      const known = new Set<string>()
      return async () => {
        const fresh = (await given.daemon.ownedIds()).filter((id) => !before.has(id))
        for (const id of fresh) known.add(id)
        // First the sandbox of the step, then that of the memory.
        return known.size > 1 && fresh.length > 0
      }
    }
    for (const moment of [starting, up, saving]) {
      // A build's lines come over a connection that is lost, so its caller is told.
      const begin = () =>
        prepare().catch((error) => {
          expect(error).toMatchObject({ code: 'connection_lost' })
        })
      const template = await (await strike(moment, begin)).work
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
