import { mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { gvisorPlaces, pythonImage, temporaryDirectory, whyNoGvisor } from '@sandlot/testkit'
import { describe, expect, test } from 'vitest'
import { type DriverHarness, readText, shell, specFor } from '../conformance/harness.ts'
import type { Sandbox } from '../driver.ts'
import type { Image } from '../image/image.ts'
import { type ImageStore, openImageStore } from '../image/store.ts'
import { GvisorDriver } from './driver.ts'

const reason = await whyNoGvisor()
const MIB = 2 ** 20

async function setup() {
  const places = await gvisorPlaces()
  const directory = await temporaryDirectory()
  const images = await storeWith(await pythonImage(), directory.path)
  const [base] = await images.list()
  if (!base) throw new Error('the store has no image')
  const driver = new GvisorDriver(places.options)
  const start = ({ layers }: Image) => {
    const spec = specFor({ layers } as unknown as DriverHarness, {
      limits: { memoryBytes: 512 * MIB, diskBytes: 256 * MIB },
    })
    return driver.create(spec)
  }
  const extend = (parent: Image, sandbox: Sandbox, exclude: readonly string[] = []) =>
    images.extend({
      parent: parent.id,
      difference: sandbox.guest.tar.difference('main', { exclude }),
    })
  return {
    driver,
    base,
    images,
    start,
    extend,
    [Symbol.asyncDispose]: async () => {
      await driver[Symbol.asyncDispose]()
      await places[Symbol.asyncDispose]()
      await directory[Symbol.asyncDispose]()
    },
  }
}

/** A store of its own that has one image: nothing is added to the one that all tests share. */
async function storeWith(image: Image, directory: string): Promise<ImageStore> {
  for (const name of ['layers', 'images']) await mkdir(join(directory, name))
  for (const { path } of image.layers) {
    await symlink(path, join(directory, 'layers', basename(path)))
  }
  const { layers, ...rest } = image
  const view = { ...rest, layers: layers.map(({ path: _, ...layer }) => layer) }
  await writeFile(join(directory, 'images', `${image.id}.json`), JSON.stringify(view))
  return await openImageStore({
    directory,
    openBlob: async () => {
      throw new Error('there are no blobs')
    },
  })
}

async function python(sandbox: Sandbox, program: string, ...args: string[]): Promise<string> {
  const path = new URL(`./fixtures/${program}`, import.meta.url)
  const text = await readFile(path)
  await sandbox.guest.files.write('main', `/dev/shm/${program}`, text)
  const said = '/dev/shm/said'
  const command = `exec python3 -B /dev/shm/${program} ${args.join(' ')} > ${said}`
  expect(await shell(sandbox, command)).toMatchObject({ exitCode: 0, stderr: '' })
  return await readText(sandbox, 'main', said)
}

describe.skipIf(reason !== '')(`differences in gVisor${reason && `: ${reason}`}`, () => {
  test('a sandbox of the new image has the same files, entry for entry', async () => {
    await using each = await setup()
    let image = each.base
    let sandbox = await each.start(image)
    for (const turn of ['1', '2']) {
      await python(sandbox, 'changes.py', turn)
      const expected = await python(sandbox, 'listing.py')
      image = await each.extend(image, sandbox)
      expect(image.layers).toHaveLength(1 + Number(turn))
      const next = await each.start(image)
      const found = await python(next, 'listing.py')
      expect(found.split('\n')).toEqual(expected.split('\n'))
      await each.driver.stop(sandbox)
      sandbox = next
    }
  })

  test('without a change it is the parent again', async () => {
    await using each = await setup()
    const sandbox = await each.start(each.base)
    expect(await each.extend(each.base, sandbox)).toEqual(each.base)
    await shell(sandbox, 'cat /etc/passwd; ls -R /usr/lib > /dev/null')
    expect(await each.extend(each.base, sandbox)).toEqual(each.base)
  })

  test('what is excluded is as if nothing had been done there', async () => {
    await using each = await setup()
    const sandbox = await each.start(each.base)
    await shell(
      sandbox,
      'mkdir -p /new/in /kept; echo a > /new/in/a; echo b > /kept/b; echo c > /tmp/c; rm /etc/passwd; rm -r /usr/share; mkdir /usr/share; echo d > /etc/d',
    )
    const exclude = ['/new', '/tmp/', '/etc/passwd', '/usr/share']
    const image = await each.extend(each.base, sandbox, exclude)
    const next = await each.start(image)
    const seen = await shell(
      next,
      'ls -A /new /tmp; cat /kept/b /etc/d; test -s /etc/passwd && test -d /usr/share/doc && echo whole',
    )
    expect(seen.stdout).toBe('/new:\n\n/tmp:\nb\nd\nwhole\n')
  })

  test('an ended world gives its difference, and a grader’s world its own', async () => {
    await using each = await setup()
    const sandbox = await each.start(each.base)
    await shell(sandbox, 'mkdir /work; echo a > /work/a; echo b > /work/b')
    await each.driver.openGradeWorld(sandbox, { world: 'grade', shows: 'main' })
    await shell(sandbox, 'rm -r /work; mkdir /work; echo c > /work/c', { world: 'grade' })
    const image = await each.extend(each.base, sandbox)
    const graded = await each.images.extend({
      parent: image.id,
      difference: sandbox.guest.tar.difference('grade'),
    })
    const next = await each.start(graded)
    expect((await shell(next, 'cd /work; grep . *')).stdout).toBe('c\n')
    const main = await each.start(image)
    expect((await shell(main, 'cd /work; grep . *')).stdout).toBe('a:a\nb:b\n')
  })

  test('holes take no disk', async () => {
    await using each = await setup()
    const sandbox = await each.start(each.base)
    await shell(sandbox, 'truncate -s 64M /holes; echo end >> /holes')
    const image = await each.extend(each.base, sandbox)
    const layer = await stat(image.layers.at(-1)?.path ?? '')
    expect(layer.size).toBeGreaterThan(64 * MIB)
    expect(layer.blocks * 512).toBeLessThan(MIB)
    const next = await each.start(image)
    const seen = await shell(
      next,
      "stat -c %s /holes; tail -c 4 /holes; tr -d '\\0' < /holes | wc -c",
    )
    expect(seen.stdout).toBe('67108868\nend\n4\n')
  })

  test('files that change and vanish meanwhile break nothing', async () => {
    await using each = await setup()
    const sandbox = await each.start(each.base)
    await shell(sandbox, 'mkdir /work; head -c 200000 /dev/urandom > /work/steady')
    const busy = sandbox.guest.exec.run({
      world: 'main',
      exec: 'busy',
      argv: [
        'sh',
        '-c',
        'cd /work; while :; do for n in 1 2 3 4 5 6 7 8 9; do head -c $((n * 99999)) /dev/zero > f$n; mkdir -p d$n/e; cp steady d$n/e; done; rm -r d* f*; mkdir f1; rmdir f1; done',
      ],
      env: [['PATH', '/usr/bin:/bin']],
      cwd: '/',
    })
    busy.catch(() => {})
    for (let round = 0; round < 5; round++) {
      const image = await each.extend(each.base, sandbox)
      const next = await each.start(image)
      expect((await shell(next, 'stat -c %s /work/steady')).stdout).toBe('200000\n')
      await each.driver.stop(next)
    }
    expect(await shell(sandbox, 'exit 7')).toMatchObject({ exitCode: 7 })
  })

  test('a file that is copied up meanwhile is whole', async () => {
    await using each = await setup()
    const first = await each.start(each.base)
    await shell(first, 'head -c 60000000 /dev/urandom > /big; sha1sum /big > /sum')
    const image = await each.extend(each.base, first)
    await each.driver.stop(first)
    const sandbox = await each.start(image)
    const touched = shell(sandbox, 'chmod 600 /big')
    const again = await each.extend(image, sandbox)
    await touched
    const next = await each.start(again)
    expect((await shell(next, 'sha1sum -c /sum')).stdout).toBe('/big: OK\n')
  })

  test('given up in its middle it leaves nothing, and the sandbox goes on', async () => {
    await using each = await setup()
    const sandbox = await each.start(each.base)
    await shell(sandbox, 'head -c 50000000 /dev/urandom > /big')
    const controller = new AbortController()
    const wait = { signal: controller.signal }
    const difference = sandbox.guest.tar.difference('main', {}, wait)
    const aborting = async function* () {
      for await (const bytes of difference) {
        yield bytes
        controller.abort(new Error('enough'))
      }
    }
    const extended = each.images.extend({ parent: each.base.id, difference: aborting() }, wait)
    await expect(extended).rejects.toThrow('enough')
    expect(await each.images.list()).toHaveLength(1)
    await each.images.extend({
      parent: each.base.id,
      difference: sandbox.guest.tar.difference('main'),
    })
    expect(await readText(sandbox, 'main', '/etc/debian_version')).toMatch(/^12/)
  })

  test('times before 1970 become it, and a file beyond what a layer holds is refused by name', async () => {
    await using each = await setup()
    const sandbox = await each.start(each.base)
    const times = ['-1500000001', '-500000000', '-5', '9000000000999999999']
    const touch = `import os
for ns in (${times.join()}): os.close(os.open(f'/t{ns}', os.O_CREAT)); os.utime(f'/t{ns}', ns=(0, ns))`
    expect(await shell(sandbox, `python3 -c "${touch}"`)).toMatchObject({ exitCode: 0, stderr: '' })
    const copy = await each.start(await each.extend(each.base, sandbox))
    const look = `python3 -c "import os; print(*(os.stat(f'/t{ns}').st_mtime_ns for ns in (${times.join()})))"`
    expect((await shell(copy, look)).stdout).toBe('0 0 0 9000000000999999999\n')

    await shell(sandbox, 'truncate -s 9223372036854775807 /long')
    await expect(each.extend(each.base, sandbox)).rejects.toMatchObject({
      code: 'image_source_invalid',
      message: expect.stringContaining('/long is'),
    })
    await shell(sandbox, 'rm /long')
    await each.extend(each.base, sandbox)
  })
})
