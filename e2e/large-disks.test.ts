import { readdirSync, readlinkSync } from 'node:fs'
import { Sandbox } from 'sandlot'
import { expect, test } from 'vitest'
import { fill, python } from './harness/shells.ts'
import { story } from './harness/story.ts'
import { until } from './harness/until.ts'

const MIB = 2 ** 20
const resources = { memory: '256MiB', disk: '1GiB' }

/** A file of blocks that are all different, and one that is nearly all holes; what is in them goes by in one line. */
const WRITE = python(`
with open('/work/dense', 'wb') as file:
    for n in range(300): file.write(n.to_bytes(4, 'big') * (1 << 18))
with open('/work/sparse', 'wb') as file:
    file.seek(800 << 20)
    file.write(b'end')
`)
const LOOK = python(`
import zlib
for name in ('dense', 'sparse'):
    with open('/work/' + name, 'rb') as file:
        sum = size = 0
        while block := file.read(1 << 20): sum, size = zlib.crc32(block, sum), size + len(block)
        print(name, size, sum)
`)

await story('disks larger than the memory', { pool: 1 }, (given) => {
  const create = (options: object = {}) =>
    given.client.sandboxes.create({ from: given.image, resources, ...options })
  /** Files of this daemon's sandboxes, two each, that some process has open: they have no name any more. */
  const held = () => {
    const prefix = `${given.daemon.dataDirectory}/runtime/disks/`
    const processes = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
    const files = processes.flatMap((pid) => listed(`/proc/${pid}/fd`).map(target))
    return [...new Set(files)].filter((path) => path.startsWith(prefix))
  }

  test('are full at their size, whatever the memory is', async () => {
    await using sandbox = await create()
    expect(await sandbox.view()).toMatchObject({ diskMedium: 'disk', origin: 'cold' })
    expect((await sandbox.exec('df -m --output=size,used /')).stdout).toMatch(/1024\s+0\n/)
    const full = await sandbox.exec(fill('/fill'))
    expect(full).toMatchObject({ exitCode: 0, stdout: 'ENOSPC\n' })
    expect(await sandbox.files.stat('/fill')).toMatchObject({ sizeBytes: 1024 * MIB })
    await expect(sandbox.files.write('/more', 'x')).rejects.toMatchObject({ code: 'no_space' })
    const { usage } = await sandbox.view()
    expect(usage?.diskBytes).toBeGreaterThan(1000 * MIB)
    expect(usage?.memoryBytes).toBeLessThan(200 * MIB)
    await sandbox.exec('rm /fill')
    await sandbox.files.write('/more', 'x')
    await until('the machine has it back', async () => {
      const { usage } = await sandbox.view()
      return usage && usage.diskBytes < 100 * MIB
    })
    // A disk that fits is in memory, and at once.
    await using small = await create({ resources: { memory: '256MiB', disk: '128MiB' } })
    expect(await small.view()).toMatchObject({ diskMedium: 'memory' })
  })

  test('are saved, started from and forked, with holes and without', async () => {
    await using sandbox = await create()
    await sandbox.exec('mkdir /work; rm -r /usr/share/doc; mkdir /usr/share/doc')
    expect(await sandbox.exec(WRITE)).toMatchObject({ exitCode: 0, stderr: '' })
    const { stdout: written } = await sandbox.exec(LOOK)
    expect(written).toContain(`dense ${300 * MIB} `)
    const snapshot = await sandbox.snapshot({ kind: 'filesystem' })
    expect(snapshot.sizeBytes).toBeGreaterThan(300 * MIB)
    const next = await create({ from: snapshot })
    // It has all of it below, and nothing of its own.
    expect((await next.exec('df -m --output=size,used /')).stdout).toMatch(/1024\s+0\n/)
    for (const copy of [next, ...(await sandbox.fork(1, { kind: 'filesystem' }))]) {
      if (!(copy instanceof Sandbox)) throw copy
      expect((await copy.exec(LOOK)).stdout).toBe(written)
      expect((await copy.exec('ls /usr/share/doc | wc -l')).stdout).toBe('0\n')
      await copy.stop()
    }
    for await (const { id } of given.client.snapshots.list()) {
      await given.client.snapshots.delete(id, { force: true })
    }
  })

  test('are paused and forked with their memory', async () => {
    await using sandbox = await create({ checkpointable: true })
    await sandbox.exec('head -c 100000000 /dev/urandom > /big')
    const { stdout } = await sandbox.exec('sha256sum /big')
    await sandbox.pause()
    expect(held()).toEqual([])
    await sandbox.resume()
    expect((await sandbox.exec('sha256sum /big')).stdout).toBe(stdout)
    const [copy] = await sandbox.fork(1, { kind: 'memory' })
    if (!(copy instanceof Sandbox)) throw copy
    expect((await copy.exec('sha256sum /big; echo own > /own')).stdout).toBe(stdout)
    await expect(sandbox.files.stat('/own')).rejects.toMatchObject({ code: 'file_not_found' })
    await copy.stop()
  })

  test('serve episodes and their graders, full ones too', async () => {
    const run = given.client.rollouts.map(
      [{ id: 'good' }, { id: 'full' }],
      async ({ sandbox, task }) => {
        await sandbox.files.write('/work/answer', '42')
        await sandbox.exec('head -c 400000000 /dev/zero > /work/large')
        if (task.id === 'full') await sandbox.exec(fill('/fill'))
      },
      {
        ...{ from: given.image, resources, concurrency: 2 },
        grade: {
          run: 'set -e; head -c 100000000 /dev/zero > /report; [ $(stat -c %s /work/large) = 400000000 ]; grep -q 42 /work/answer',
        },
      },
    )
    const rows = await run.wait()
    const told = rows.map(({ key, outcome, reward, flags }) => ({ key, outcome, reward, flags }))
    expect(told.sort((a, b) => (a.key < b.key ? 1 : -1))).toEqual([
      { key: 'good', outcome: 'graded', reward: 1, flags: [] },
      { key: 'full', outcome: 'graded', reward: 1, flags: ['disk'] },
    ])
    for (const { usage } of rows) expect(usage.diskBytes).toBeGreaterThan(490_000_000)
  })

  test('live on when the daemon is killed, and take nothing with them when they end', async () => {
    const write = 'head -c 300000000 /dev/zero > /big; echo end >> /big'
    const kept = await create()
    await kept.exec(write)
    const brief = await create({ keepWarm: '10s' })
    await brief.exec(write)
    expect(held()).toHaveLength(4)
    await given.daemon.kill()
    // Nobody is there but the sandbox itself, whose time is over.
    await until('the files of the other one are left', () => held().length === 2)
    await given.daemon.start()
    expect(await kept.view()).toMatchObject({ state: 'running', diskMedium: 'disk' })
    expect((await kept.view()).usage?.diskBytes).toBeGreaterThan(280 * MIB)
    expect(await kept.exec('tail -c 4 /big')).toMatchObject({ stdout: 'end\n' })
    await expect(brief.exec('true')).rejects.toMatchObject({
      code: expect.stringMatching(/sandbox_(gone|lost)/),
    })
    await kept.stop()
    expect(held()).toEqual([])
  })

  test('that cannot be are refused with what to do', async () => {
    const refused = async (disk: string) => {
      const error = await create({ resources: { disk } }).then(
        () => undefined,
        (error) => error,
      )
      expect(error).toMatchObject({ code: 'invalid_request' })
      return error.message
    }
    expect(await refused('0B')).toMatch(/resources.disk: below the least, 1MiB/)
    expect(await refused('0')).toMatch(/"0" is not a size/)
    expect(await refused('1EiB')).toMatch(/"1EiB" is not a size .*TiB/)
    expect(await refused('500TiB')).toMatch(/resources.disk: .*TiB are needed .* gives .* in all/)
    expect(await Array.fromAsync(given.client.sandboxes.list())).toEqual([])
  })
})

function listed(directory: string): readonly string[] {
  try {
    return readdirSync(directory).map((name) => `${directory}/${name}`)
  } catch {
    return []
  }
}

function target(link: string): string {
  try {
    return readlinkSync(link)
  } catch {
    return ''
  }
}
