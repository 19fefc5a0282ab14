import { existsSync } from 'node:fs'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Image, Sandbox } from 'sandlot'
import { expect, test } from 'vitest'
import { runCommand } from './harness/command.ts'
import { story } from './harness/story.ts'
import { seenUnderWay } from './harness/under-way.ts'

const PREPARE = `set -e
mkdir -p /work/deep; cd /work
echo prepared > state; ln state deep/link; ln -s state soft; chmod 4711 state
touch -d '2001-02-03 04:05:06.123456789' deep/old
rm /etc/hostname 2>/dev/null || true; rm -r /usr/share/doc; mv /etc/motd /etc/motd.moved 2>/dev/null || true
echo left > /tmp/left`
const LOOK = `cd /work; stat -c '%n %a %u:%g %h %y' state deep/link deep/old; readlink soft; cat state; ls /usr/share/doc 2>&1 | wc -l; ls -A /tmp`

await story('filesystem snapshots', { pool: 1 }, (given) => {
  const prepared = async (): Promise<Sandbox> => {
    const sandbox = await given.client.sandboxes.create({ from: given.image })
    expect(await sandbox.exec(PREPARE)).toMatchObject({ exitCode: 0 })
    return sandbox
  }
  const look = async (sandbox: Sandbox) => (await sandbox.exec(LOOK)).stdout

  test('what one prepared many have, and nothing of one another', async () => {
    await using sandbox = await prepared()
    const running = sandbox.exec('sleep 1000', { stream: true })
    const snapshot = await sandbox.snapshot({ kind: 'filesystem', name: 'prepared' })
    const starts = Array.from({ length: 3 }, () =>
      given.client.sandboxes.create({ from: snapshot }),
    )
    const all = await Promise.all(starts)
    for (const [index, each] of all.entries()) {
      expect(await look(each)).toBe(await look(sandbox))
      await each.exec(`echo ${index} > /work/own; rm /work/state`)
    }
    for (const [index, each] of all.entries()) {
      expect((await each.exec('cat /work/own; ls /work')).stdout).toBe(
        `${index}\ndeep\nown\nsoft\n`,
      )
    }
    expect((await sandbox.exec('cat /work/state')).stdout).toBe('prepared\n')
    await running.kill()
    const [first] = all
    const second = await first?.snapshot({ kind: 'filesystem' })
    expect(second).toMatchObject({ parent: snapshot.id })
    await using next = await given.client.sandboxes.create({ from: second?.id ?? '' })
    expect((await next.exec('ls /work')).stdout).toBe('deep\nown\nsoft\n')
    for (const each of all) await each.stop()
  })

  test('copies of the files, and what the command line says of snapshots', async () => {
    await using sandbox = await prepared()
    for (const copy of await sandbox.fork(2, { kind: 'filesystem', tags: { of: 'fork' } })) {
      if (!(copy instanceof Sandbox)) throw copy
      expect(await look(copy)).toBe(await look(sandbox))
      expect(await copy.view()).toMatchObject({ parent: sandbox.id, tags: { of: 'fork' } })
      await copy.stop()
    }
    const { environment } = given.daemon
    const run = (...argv: string[]) => runCommand(argv, { environment })
    const taken = await run('sandbox', 'snapshot', sandbox.id, '--name', 'n', '--exclude', '/tmp')
    expect(taken).toMatchObject({ code: 0 })
    const id = taken.stdout.trim()
    expect((await run('snapshots', 'list', '--name', 'n')).stdout).toContain(id)
    await using next = await given.client.sandboxes.create({ from: id })
    expect((await next.exec('ls -A /tmp')).stdout).toBe('')
    const refused = await run('snapshots', 'delete', id)
    expect(refused.stderr).toContain('in use')
    expect(await run('snapshots', 'delete', id, '--force')).toMatchObject({ code: 0 })
    expect((await next.exec('cat /work/state')).stdout).toBe('prepared\n')
  })

  test('a daemon that is killed meanwhile leaves no half-made one', async () => {
    const { daemon } = given
    const images = join(daemon.dataDirectory, 'images')
    const count = async (folder: string) => (await readdir(join(images, folder))).length
    const sandbox = await prepared()
    await sandbox.exec('head -c 60000000 /dev/urandom > /work/big')
    const whole = await sandbox.snapshot({ kind: 'filesystem' })
    const moments = {
      begun: async () => (await count('tmp')) > 0,
      written: async (before: number) => (await count('layers')) > before,
      published: async (_: number, before: number) => (await count('images')) > before,
    }
    const takenAt = async (moment: keyof typeof moments) => {
      let before: readonly [number, number] | undefined
      return await seenUnderWay(
        async () => {
          before = undefined
          await sandbox.exec(`echo ${moment} ${performance.now()} > /work/moment`)
          before = [await count('layers'), await count('images')]
          return await sandbox.snapshot({ kind: 'filesystem' })
        },
        async () => before !== undefined && (await moments[moment](...before)),
      )
    }
    for (const moment of Object.keys(moments) as (keyof typeof moments)[]) {
      const { work: taken } = await takenAt(moment)
      await daemon.kill()
      // The next one may be asked for the same at once.
      const marks = (await readdir(join(images, 'tmp'))).map((name) =>
        join(images, 'tmp', name, 'of the one before'),
      )
      for (const mark of marks) await writeFile(mark, '')
      await daemon.start()
      expect(marks.filter((mark) => existsSync(mark))).toEqual([])
      // The same request again gives the whole one, whatever the killed daemon had done of it.
      expect(await taken.catch(() => sandbox.snapshot({ kind: 'filesystem' }))).toMatchObject({
        sandbox: sandbox.id,
      })
      for await (const { id, image, ...rest } of given.client.snapshots.list()) {
        expect(await given.client.images.verify(image)).toEqual([])
        if (rest.sandbox !== sandbox.id) continue
        await using next = await given.client.sandboxes.create({ from: id })
        expect(await next.exec('cat /work/state')).toMatchObject({ exitCode: 0 })
      }
    }
    expect(await given.client.snapshots.get(whole.id)).toMatchObject({ id: whole.id })
    await sandbox.stop()
  })

  test('extended attributes are warned of, by path', async () => {
    const mark = (path: string) => [
      'python3',
      '-c',
      `import os; os.setxattr('${path}', 'user.x', b'1')`,
    ]
    const warning = (path: string) =>
      `extended attributes are not kept in layers: "${path}" (user.x)`
    const log: string[] = []
    const image = await given.client.images.build(
      Image.fromId(given.image).run(`echo ${Date.now()} > /marked`).run(mark('/marked')),
      { onLog: (line) => log.push(line) },
    )
    expect(log.filter((line) => line.includes('attributes'))).toEqual([
      expect.stringContaining(warning('/marked')),
    ])
    await using sandbox = await given.client.sandboxes.create({ from: image.id })
    expect((await sandbox.snapshot({ kind: 'filesystem' })).warnings).toBeUndefined()
    // On a directory of the image too, and on a file with holes.
    await sandbox.exec('truncate -s 8M /sparse')
    for (const path of ['/etc', '/sparse']) await sandbox.exec(mark(path))
    const { environment } = given.daemon
    const taken = await runCommand(['sandbox', 'snapshot', sandbox.id], { environment })
    const { warnings } = await given.client.snapshots.get(taken.stdout.trim())
    expect([...(warnings ?? [])].sort()).toEqual([warning('/etc'), warning('/sparse')])
    for (const path of ['/etc', '/sparse']) expect(taken.stderr).toContain(warning(path))
    for await (const { id, sandbox: of } of given.client.snapshots.list()) {
      if (of === sandbox.id) await given.client.snapshots.delete(id)
    }
  })
})
