import { spawn } from 'node:child_process'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { ImageSource } from '@sandlot/protocol'
import { listErofs, openTestImages, temporaryDirectory } from '@sandlot/testkit'
import { expect, test } from 'vitest'
import { openImageStore } from './store.ts'

const noBlobs = async (): Promise<never> => {
  throw new Error('no blobs here')
}

test('Debian with Python', { timeout: 180_000 }, async () => {
  await using store = await openTestImages()
  const source: ImageSource = { kind: 'debian', suite: 'bookworm', packages: ['python3'] }
  const image = await store.build(source)
  expect(image.config).toMatchObject({ workdir: '/', user: 'root', env: { LANG: 'C.UTF-8' } })
  expect(await store.verify(image.id)).toEqual([])
  const paths = new Map<string, string>()
  for (const line of await listErofs(image.layers[0]?.path ?? '')) {
    const [path = ''] = line.split(' ')
    paths.set(path, line)
  }
  for (const path of ['usr/bin/python3.11', 'usr/bin/dash', 'proc', 'sys', 'dev', 'tmp', 'run']) {
    expect(paths.get(path), path).toBeDefined()
  }
  // Java's packages link into it.
  expect(paths.get('usr/share/man/man1')).toContain(' directory ')
  expect(paths.get('bin')).toContain(' symlink ')
  expect(paths.get('tmp')).toContain(' directory 1777 ')
  const rest = [...paths.keys()].filter(
    (path) =>
      /^(dev|var\/lib\/apt\/lists|var\/log|usr\/share\/man\/man[1-8])\/./.test(path) ||
      path === 'etc/resolv.conf',
  )
  expect(rest).toEqual([])
  expect(
    await store.build({ kind: 'debian', suite: 'bookworm', packages: ['python3', 'python3'] }),
  ).toEqual(image)
})

test('a build that is aborted leaves no process, mount or file', { timeout: 180_000 }, async () => {
  await using directory = await temporaryDirectory()
  await using store = await openImageStore({ directory: directory.path, openBlob: noBlobs })
  const controller = new AbortController()
  const downloading = Promise.withResolvers<void>()
  const build = store.build(
    { kind: 'debian', suite: 'bookworm', packages: [] },
    {
      signal: controller.signal,
      onLog: (line) => line.includes('installing Debian') && downloading.resolve(),
    },
  )
  await Promise.race([downloading.promise, build])
  controller.abort(new Error('had enough'))
  await expect(build).rejects.toThrow('had enough')
  expect(await readdir(join(directory.path, 'tmp'))).toEqual([])
  expect(await readFile('/proc/mounts', 'utf8')).not.toContain(directory.path)
  expect(await processesThatMention(directory.path)).toEqual([])
})

test('a build dies with its daemon, and the next one cleans up', { timeout: 180_000 }, async () => {
  await using directory = await temporaryDirectory()
  const fixture = join(import.meta.dirname, 'fixtures', 'build-debian.ts')
  const daemon = spawn(process.execPath, [fixture, directory.path])
  for await (const line of createInterface({ input: daemon.stdout })) {
    if (line.includes('installing Debian')) break
  }
  expect(await processesThatMention(directory.path)).not.toEqual([])
  daemon.kill('SIGKILL')
  await expect.poll(() => processesThatMention(directory.path)).toEqual([])
  expect(await readdir(join(directory.path, 'tmp'))).toHaveLength(1)
  await using _next = await openImageStore({ directory: directory.path, openBlob: noBlobs })
  expect(await readdir(join(directory.path, 'tmp'))).toEqual([])
})

test('a package that does not exist fails with the lines that say so', {
  timeout: 180_000,
}, async () => {
  await using directory = await temporaryDirectory()
  await using store = await openImageStore({ directory: directory.path, openBlob: noBlobs })
  const source: ImageSource = {
    kind: 'debian',
    suite: 'bookworm',
    packages: ['no-such-package-anywhere'],
  }
  const news: string[] = []
  const details: string[] = []
  const onLog = (line: string) => news.push(line)
  const onDetail = (line: string) => details.push(line)
  await expect(store.build(source, { onLog, onDetail })).rejects.toMatchObject({
    code: 'image_build_failed',
    message: expect.stringMatching(/exit code \d+:\n(.*\n)*.*no-such-package-anywhere/),
    exitCode: expect.any(Number),
    hint: expect.stringContaining('no-such-package-anywhere'),
    logTail: expect.arrayContaining([expect.stringContaining('no-such-package-anywhere')]),
  })
  expect(details.join('\n')).toContain('no-such-package-anywhere')
  expect(news).toEqual([
    'reading the package lists of Debian bookworm',
    'downloading Debian bookworm',
    'unpacking Debian bookworm',
  ])
  expect(await store.list()).toEqual([])
  expect(await readdir(join(directory.path, 'tmp'))).toEqual([])
})

test('another distribution is told what to do instead', async () => {
  await using directory = await temporaryDirectory()
  const aptDirectory = join(directory.path, 'apt')
  const osReleasePath = join(directory.path, 'os-release')
  await mkdir(aptDirectory)
  await writeFile(osReleasePath, 'VERSION_CODENAME=noble\n')
  await writeFile(join(aptDirectory, 'sources.list'), 'deb http://mirror.example/x plucky main\n')
  await using store = await openImageStore({
    directory: join(directory.path, 'images'),
    openBlob: noBlobs,
    debian: { aptDirectory, osReleasePath },
  })
  await expect(
    store.build({ kind: 'debian', suite: 'bookworm', packages: [] }),
  ).rejects.toMatchObject({ code: 'image_build_failed', hint: expect.stringMatching(/OCI/) })
})

async function processesThatMention(text: string): Promise<string[]> {
  const found: string[] = []
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue
    const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
    if (line.includes(text)) found.push(line.replaceAll('\0', ' '))
  }
  return found
}
