import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pythonImage, temporaryDirectory } from '@sandlot/testkit'
import { Image, type ImageDescription, type Sandbox } from 'sandlot'
import { expect, test } from 'vitest'
import { story } from './harness/story.ts'
import { OFTEN_MS, until } from './harness/until.ts'

const MANY = 100
const FEW = 15
/** As many layers as an image has that was joined. */
const JOINED = 10
/** Takes long enough to join for a look each 20 ms. */
const LARGE_BYTES = 256 * 1024 ** 2

await story('images of many layers', { pool: 1, images: [await pythonImage()] }, (given) => {
  /** A file for each layer, and one that all of them change. */
  const deep = async (directory: string, mark: string, steps = MANY): Promise<string> => {
    let image: ImageDescription = Image.fromId(given.image)
    for (let n = 0; n < steps; n++) {
      const path = join(directory, `${mark}-${n}`)
      await mkdir(path, { recursive: true })
      await writeFile(join(path, `f${n}`), `${mark} ${n}\n`)
      await writeFile(join(path, 'last'), `${mark} ${n}\n`)
      image = image.copy(path, '/deep')
    }
    return (await given.client.images.build(image)).id
  }
  const LOOK = 'ls /deep/f* /deep/last | wc -l; cat /deep/last'
  const wanted = (mark: string, steps = MANY) => `${steps + 1}\n${mark} ${steps - 1}\n`
  const look = async (sandbox: Sandbox) => (await sandbox.exec(LOOK)).stdout
  const start = (from: string, options: object = {}) =>
    given.client.sandboxes.create({ from, ...options })
  const layersOf = async (sandbox: Sandbox) =>
    (await given.client.images.get((await sandbox.view()).image)).layers.length

  test('start at once with all of them, and later with few; what was saved of both goes on', async () => {
    await using directory = await temporaryDirectory()
    /** Another one where it was joined first: the thread that joins lets the start go first, and both may stand still. */
    const startWhole = async () => {
      for (let n = 1; ; n++) {
        const mark = `one-${n}`
        const from = await deep(directory.path, mark)
        const early = await start(from, { checkpointable: true })
        if ((await layersOf(early)) > JOINED) return { mark, from, early }
        await early.stop()
        await given.client.images.remove(from)
      }
    }
    const { mark, from, early } = await startWhole()
    const paused = await start(from, { checkpointable: true })
    expect(await layersOf(early)).toBe(MANY + 1)
    expect(await look(early)).toBe(wanted(mark))
    await until('a start has few layers', async () => {
      await using probe = await start(from)
      expect(await look(probe)).toBe(wanted(mark))
      return (await layersOf(probe)) <= JOINED
    })
    const late = await start(from, { checkpointable: true })
    for (const sandbox of [early, late, paused]) await sandbox.exec('echo mine > /deep/mine')
    const snapshots = await Promise.all(
      [early, late].map((sandbox) => sandbox.snapshot({ kind: 'memory' })),
    )
    const files = await late.snapshot({ kind: 'filesystem' })
    expect(files.parent).toBe(from)
    await paused.pause()
    await given.daemon.kill()
    await given.daemon.start()
    await paused.resume()
    expect(await paused.files.readText('/deep/mine')).toBe('mine\n')
    for (const { id } of [...snapshots, files]) {
      await using copy = await start(id)
      expect((await copy.exec(`rm /deep/mine; ${LOOK}`)).stdout).toBe(wanted(mark))
    }
    const refused = given.client.images.remove(from)
    await expect(refused).rejects.toMatchObject({ code: 'image_in_use' })
    for (const sandbox of [early, late, paused]) await sandbox.stop()
    for (const { id } of [...snapshots, files]) await given.client.snapshots.delete(id)
    await given.client.images.remove(from)
    const listed = await Array.fromAsync(given.client.images.list())
    expect(listed.map(({ id }) => id)).toEqual([given.image])
  })

  test('a daemon that is killed while it joins leaves nothing of it, and the next one does it', async () => {
    await using directory = await temporaryDirectory()
    const inStore = (...path: string[]) => join(given.daemon.dataDirectory, 'images', ...path)
    const tmp = inStore('tmp')
    const joining = async () => {
      for (const name of await readdir(tmp)) {
        const files: string[] = await readdir(join(tmp, name)).catch(() => [])
        if (files.includes('joined.erofs')) return true
      }
      return false
    }
    const hasJoined = async () => {
      const records = (await readdir(inStore('images'))).map(async (name) =>
        (await readFile(inStore('images', name), 'utf8').catch(() => '')).includes('"joinedOf"'),
      )
      return (await Promise.all(records)).includes(true)
    }
    await mkdir(join(directory.path, `two-${FEW - 1}`))
    await writeFile(join(directory.path, `two-${FEW - 1}`, 'large'), randomBytes(LARGE_BYTES))
    const building = deep(directory.path, 'two', FEW)
    building.catch(() => {})
    // Whoever looks may stand still for longer than it takes.
    await until('it joins', async () => (await joining()) || (await hasJoined()), {
      everyMs: OFTEN_MS,
    })
    await given.daemon.kill()
    // The next daemon may join the same at once, in a place of the same name.
    const marks = (await readdir(tmp)).map((name) => join(tmp, name, 'of the one before'))
    for (const mark of marks) await writeFile(mark, '')
    await given.daemon.start()
    expect(marks.filter((mark) => existsSync(mark))).toEqual([])
    // Asked for again, also where the answer had not come.
    const from = await building.catch(() => deep(directory.path, 'two', FEW))
    await until('a start has few layers', async () => {
      await using probe = await start(from)
      expect(await look(probe)).toBe(wanted('two', FEW))
      return (await layersOf(probe)) <= JOINED
    })
    expect(await given.client.images.verify(from)).toEqual([])
    await given.client.images.remove(from)
  })
})
