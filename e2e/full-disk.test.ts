import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readdir, rm, statfs, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gvisorOptions } from '@sandlot/runtime'
import { pythonImage, temporaryDirectory } from '@sandlot/testkit'
import { Image, Sandbox } from 'sandlot'
import { afterAll, expect, test } from 'vitest'
import { story } from './harness/story.ts'
import { until } from './harness/until.ts'

const MIB = 2 ** 20
const execute = promisify(execFile)
/** The python image has 173 MiB. */
const DATA_BYTES = 900 * MIB
/** Files, or memory, that the disk has no room for. */
const MUCH = 150 * MIB
const LITTLE = 60 * MIB
const WRITE_MUCH = `head -c ${MUCH} /dev/urandom`

const images = [await pythonImage()]

/** While this file is there, the next checkpoint first fills the file that it names, to the last byte of the disk. */
const own = await temporaryDirectory()
const strike = join(own.path, 'strike')
const runsc = join(own.path, 'runsc')
await writeFile(
  runsc,
  `#!/bin/sh
case " $* " in
  *' checkpoint '*)
    if [ -e ${strike} ]; then
      head -c ${DATA_BYTES} /dev/zero > "$(cat ${strike})"
      rm ${strike}
    fi ;;
esac 2> /dev/null
exec ${gvisorOptions().runsc} "$@"
`,
  { mode: 0o755 },
)
afterAll(async () => await own[Symbol.asyncDispose]())

/** Nothing new is begun on a disk that is nearly full; here it is to become so, up to its very end. */
const environment = { SANDLOT_DISK_FREE: '64KiB', SANDLOT_RUNSC: runsc }
const options = { pool: 0, dataBytes: DATA_BYTES, images, environment }

await story('a full disk of the daemon', options, (given) => {
  const inside = (...path: string[]) => join(given.daemon.dataDirectory, ...path)
  /** The daemon may write between the look at what is free and the taking of it. */
  const fill = async (leave: number): Promise<void> => {
    await until('the disk is filled', async () => {
      await rm(inside('ballast'), { force: true })
      const { bavail, bsize } = await statfs(given.daemon.dataDirectory)
      const size = bavail * bsize - leave
      const filling = size > 0 ? execute('fallocate', ['-l', `${size}`, inside('ballast')]) : null
      return await Promise.resolve(filling).then(
        () => true,
        () => false,
      )
    })
  }
  const makeRoom = async () => {
    for (const name of ['ballast', 'more']) await rm(inside(name), { force: true })
  }

  const layers = async () => (await readdir(inside('images', 'layers'))).sort()
  /** All that is kept there. */
  const kept = async () => ({
    checkpoints: await readdir(inside('checkpoints')),
    layers: await layers(),
    half: await readdir(inside('images', 'tmp')),
    snapshots: (await Array.fromAsync(given.client.snapshots.list())).map(({ id }) => id),
    templates: (await Array.fromAsync(given.client.templates.list())).map(({ id }) => id),
    sandboxes: (await Array.fromAsync(given.client.sandboxes.list())).map(({ id }) => id),
  })

  /** Refused with what to do, leaving nothing; done when there is room. */
  const expectRoomNeeded = async <T>(work: () => Promise<T>, full: () => Promise<void>) => {
    await until('nothing is left of what was before', async () => (await layers()).length === 1)
    const before = await kept()
    await full()
    await expect(work()).rejects.toMatchObject({
      ...{ code: 'disk_full', fault: 'platform', retry: true },
      message: expect.stringMatching(/room|space/i),
      hint: expect.stringMatching(/images|free space/i),
    })
    expect(await kept()).toEqual(before)
    await makeRoom()
    return await work()
  }

  const changed = async (options: object = {}): Promise<Sandbox> => {
    const sandbox = await given.client.sandboxes.create({ from: given.image, ...options })
    await sandbox.exec(`${WRITE_MUCH} > /large`)
    return sandbox
  }

  test('costs no sandbox whose files are saved or forked', async () => {
    await using sandbox = await changed()
    const little = () => fill(LITTLE)
    const snapshot = await expectRoomNeeded(
      () => sandbox.snapshot({ kind: 'filesystem', name: 'files' }),
      little,
    )
    expect((await sandbox.exec('echo alive')).stdout).toBe('alive\n')
    await given.client.snapshots.delete(snapshot.id)
    const [copy] = await expectRoomNeeded(() => sandbox.fork(1, { kind: 'filesystem' }), little)
    expect((await (copy as Sandbox).exec('stat -c %s /large')).stdout).toBe(`${MUCH}\n`)
    await (copy as Sandbox).stop()
  })

  test('costs no sandbox whose memory is saved, forked or paused', async () => {
    const sandbox = await given.client.sandboxes.create({ from: given.image, checkpointable: true })
    const hold = `import os, time; b = os.urandom(${MUCH}); open('/up', 'w'); time.sleep(1e6)`
    await sandbox.exec(`setsid python3 -c "${hold}" > /dev/null 2>&1 &`)
    await until('it holds much', async () => (await sandbox.exec('test -e /up')).exitCode === 0)
    const little = () => fill(LITTLE)
    // Full from the start, and full in the middle.
    const snapshot = await expectRoomNeeded(() => sandbox.snapshot({ kind: 'memory' }), little)
    expect((await sandbox.exec('echo alive')).stdout).toBe('alive\n')
    await given.client.snapshots.delete(snapshot.id)
    const during = async () => {
      await fill(MUCH + LITTLE)
      await writeFile(strike, inside('more'))
    }
    const again = await expectRoomNeeded(() => sandbox.snapshot({ kind: 'memory' }), during)
    expect(existsSync(strike)).toBe(false)
    expect((await sandbox.exec('echo alive')).stdout).toBe('alive\n')
    await given.client.snapshots.delete(again.id)
    const [copy] = await expectRoomNeeded(() => sandbox.fork(1), little)
    await (copy as Sandbox).stop()
    await expectRoomNeeded(() => sandbox.pause(), little)
    await sandbox.resume()
    expect((await sandbox.exec('ls /up')).exitCode).toBe(0)
    await sandbox.stop()
  })

  test('costs no build but the step that it met, nor a template', async () => {
    const little = () => fill(LITTLE)
    const built = await expectRoomNeeded(
      () => given.client.images.build(Image.fromId(given.image).run(`${WRITE_MUCH} > /built`)),
      little,
    )
    await given.client.images.remove(built.id)
    const setup = [`${WRITE_MUCH} > /prepared`]
    const files = await expectRoomNeeded(
      () => given.client.prepare({ from: Image.fromId(given.image), network: 'none', setup }),
      little,
    )
    await given.client.templates.delete(files.id)
    await given.client.images.remove(files.image)
    const start = `exec python3 -c "import os, time; b = os.urandom(${MUCH}); open('/up', 'w'); time.sleep(1e6)"`
    const memory = await expectRoomNeeded(
      () =>
        given.client.prepare({
          ...{ from: Image.fromId(given.image), snapshot: 'memory', start },
          ready: { command: 'test -e /up' },
        }),
      little,
    )
    await given.client.templates.delete(memory.id)
  })

  test('to its last byte costs no sandbox that runs, nor the daemon, and can be made room on', async () => {
    await until('the tests before leave nothing that goes meanwhile', async () => {
      const { checkpoints, half, layers } = await kept()
      return checkpoints.length === 0 && half.length === 0 && layers.length === 1
    })
    const sandbox = await given.client.sandboxes.create({ from: given.image, checkpointable: true })
    await sandbox.exec('echo x > /changed')
    const saved = await sandbox.snapshot({ kind: 'memory' })
    await fill(0)
    const refused = [
      () => given.client.sandboxes.create({ from: given.image }),
      () => sandbox.snapshot({ kind: 'filesystem' }),
      () => sandbox.snapshot({ kind: 'memory' }),
      () => sandbox.fork(1, { kind: 'filesystem' }),
      () => sandbox.pause(),
    ]
    for (const work of refused) {
      const done = await work().catch((error) => error)
      // A start needs little: the daemon may have so much.
      if (done instanceof Sandbox) await done.stop()
      else expect(['disk_full', 'capacity']).toContain(done.code)
      expect((await sandbox.exec('echo alive')).stdout).toBe('alive\n')
    }
    await given.client.snapshots.delete(saved.id, { force: true })
    expect(await kept()).toMatchObject({ checkpoints: [], half: [], snapshots: [] })
    const { bavail, bsize } = await statfs(given.daemon.dataDirectory)
    expect(bavail * bsize).toBeGreaterThan(saved.sizeBytes / 2)
    const files = await sandbox.snapshot({ kind: 'filesystem' })
    await sandbox.stop()
    await given.client.snapshots.delete(files.id)
    await makeRoom()
  })
})
