import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import {
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import type { Sandbox, SandlotError } from 'sandlot'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { python } from './harness/shells.ts'
import { story } from './harness/story.ts'

const MIB = 2 ** 20
const LARGE_BYTES = 128 * MIB

await story('files of a sandbox', { pool: 1 }, (given) => {
  let sandbox: Sandbox
  let local: string
  beforeAll(async () => {
    local = await mkdtemp('/var/tmp/sandlot-e2e-files-')
    sandbox = await given.client.sandboxes.create({
      from: given.image,
      resources: { memory: '1GiB', disk: '512MiB' },
    })
  })
  afterAll(async () => {
    await sandbox.stop()
    await rm(local, { recursive: true, force: true })
  })

  const digestInside = async (path: string) =>
    (await sandbox.exec(['sha256sum', path])).stdout.split(' ')[0]

  test('large ones go up and come down in constant memory', async () => {
    const path = join(local, 'large')
    const hash = createHash('sha256')
    const block = Buffer.alloc(MIB)
    await writeFile(
      path,
      (function* () {
        for (let n = 0; n < LARGE_BYTES / MIB; n++) {
          block.fill(n)
          hash.update(block)
          yield Buffer.from(block)
        }
      })(),
    )
    const digest = hash.digest('hex')
    await sandbox.exec('true')
    const before = given.daemon.memory()
    const ownBefore = process.memoryUsage().rss
    await sandbox.files.upload(path, '/up/large')
    expect(await digestInside('/up/large')).toBe(digest)
    await sandbox.files.download('/up/large', join(local, 'down/large'))
    const down = createHash('sha256')
    for await (const part of createReadStream(join(local, 'down/large'))) down.update(part)
    expect(down.digest('hex')).toBe(digest)
    await sandbox.files.download('/up', join(local, 'tree'))
    expect((await lstat(join(local, 'tree/large'))).size).toBe(LARGE_BYTES)
    expect(given.daemon.memory().peakBytes - before.nowBytes).toBeLessThan(96 * MIB)
    expect(process.memoryUsage().rss - ownBefore).toBeLessThan(128 * MIB)
    await sandbox.exec('rm -rf /up')
  })

  test('keep any name: newlines, no UTF-8, up and down', async () => {
    const made = await sandbox.exec(
      python(
        "import os\nos.mkdir('/odd')\nfor n in [b'a\\nb', b'\\xff\\xfe', b' ', b'-rf', b'*', b'\\x01', 'gr\\u00fc\\u00dfe'.encode(), b'x' * 255]:\n  open(b'/odd/' + n, 'wb').write(n)",
      ),
    )
    expect(made).toMatchObject({ exitCode: 0, stderr: '' })
    const entries = await sandbox.files.list('/odd')
    const raw = entries
      .map(({ name, nameBase64 }) =>
        Buffer.from(nameBase64 ?? name, nameBase64 ? 'base64' : 'utf8'),
      )
      .sort(Buffer.compare)
    const odd = [
      ...[Buffer.from('a\nb'), Buffer.from([0xff, 0xfe]), Buffer.from(' '), Buffer.from('-rf')],
      ...[Buffer.from('*'), Buffer.from([1]), Buffer.from('grüße'), Buffer.alloc(255, 'x')],
    ].sort(Buffer.compare)
    expect(raw).toEqual(odd)
    for (const name of odd) {
      const path = Buffer.concat([Buffer.from('/odd/'), name])
      expect(Buffer.from(await sandbox.files.read(path))).toEqual(name)
    }
    await sandbox.files.download('/odd', join(local, 'odd'))
    const down = await readdir(Buffer.from(join(local, 'odd')), { encoding: 'buffer' })
    expect(down.sort(Buffer.compare)).toEqual(odd)
    await sandbox.files.upload(join(local, 'odd'), '/odd-again')
    expect(await sandbox.exec('diff -r /odd /odd-again')).toMatchObject({ exitCode: 0, stdout: '' })
  })

  test('that are directories, pipes, devices or missing are told apart', async () => {
    const { files } = sandbox
    await sandbox.exec(
      'mkdir -p /kinds/full; touch /kinds/full/x /kinds/file; mkfifo /kinds/fifo; ln -s nowhere /kinds/dangling; ln -s loop /kinds/loop; ln -s $(printf %0300d 0) /kinds/long',
    )
    const codeOf = async (work: Promise<unknown>) =>
      await work.then(
        () => 'ok',
        (error) => (error as SandlotError).code,
      )
    expect(await codeOf(files.read('/kinds'))).toBe('file_is_directory')
    expect(await codeOf(files.write('/kinds', 'x'))).toBe('file_is_directory')
    expect(await codeOf(files.read('/kinds/fifo'))).toBe('file_not_regular')
    expect(await codeOf(files.write('/kinds/fifo', 'x'))).toBe('file_not_regular')
    expect(await codeOf(files.read('/dev/zero'))).toBe('file_not_regular')
    expect(await codeOf(files.read('/kinds/dangling'))).toBe('file_not_found')
    await expect(files.read('/kinds/loop')).rejects.toMatchObject({
      ...{ code: 'file_failed', message: expect.stringMatching(/symbolic link/) },
    })
    expect(await codeOf(files.read('/kinds/long'))).toBe('file_failed')
    expect(await codeOf(files.read('/kinds/file/below'))).toBe('file_not_directory')
    expect(await codeOf(files.list('/kinds/file'))).toBe('file_not_directory')
    expect(await codeOf(files.remove('/kinds/full'))).toBe('directory_not_empty')
    expect(await codeOf(files.remove('/kinds/none'))).toBe('file_not_found')
    expect(await codeOf(files.read(`/${'x'.repeat(300)}`))).toBe('file_failed')
    expect(await codeOf(files.read(`/kinds/${'d/'.repeat(40)}f`))).toBe('file_not_found')
    expect(await codeOf(files.read('../../../etc/passwd'))).toBe('ok')
    expect(await codeOf(files.upload(join(local, 'none'), '/x'))).toBe('not_found')
    expect(await codeOf(files.download('/none', join(local, 'x')))).toBe('file_not_found')
  })

  test('that are links lead nowhere outside, on either side', async () => {
    const { files } = sandbox
    const outside = join(local, 'outside')
    await writeFile(outside, 'secret of the client')
    await sandbox.exec(
      `mkdir /links; cd /links; echo own >own; ln -s own inside; ln -s ${outside} out; ln -s ../../../../../../..${outside} up; ln -s / root; ln own hard; mknod dev c 1 3 2>/dev/null; mkfifo pipe; mkdir -p ${'d/'.repeat(40)}; touch ${'d/'.repeat(40)}deep`,
    )
    const target = join(local, 'links')
    await mkdir(target)
    await files.download('/links', target)
    expect((await readdir(target)).sort()).toEqual(['d', 'hard', 'inside', 'own'])
    expect(await readFile(join(target, 'hard'), 'utf8')).toBe('own\n')
    expect(await readFile(outside, 'utf8')).toBe('secret of the client')
    expect((await lstat(join(target, 'd/'.repeat(40), 'deep'))).isFile()).toBe(true)
    // Inside, an absolute link is one of the sandbox.
    await sandbox.exec(`mkdir -p ${local}; echo inside >${outside}`)
    expect(await files.readText('/links/out')).toBe('inside\n')
    expect(await files.readText('/links/root/links/own')).toBe('own\n')
    await files.write('/links/out', 'written')
    expect(await files.readText(outside)).toBe('written')
    expect(await readFile(outside, 'utf8')).toBe('secret of the client')
    // A link that is uploaded is its text, and belongs to the sandbox from then on.
    const from = join(local, 'from')
    await mkdir(join(from, 'bin'), { recursive: true })
    await symlink(outside, join(from, 'link'))
    await symlink('/usr/bin/python3', join(from, 'bin/python'))
    await symlink('../../../../../etc/passwd', join(from, 'up'))
    await files.upload(from, '/uploaded')
    expect(await files.stat('/uploaded/up', { follow: false })).toMatchObject({
      ...{ kind: 'symlink', target: '../../../../../etc/passwd' },
    })
    expect(await files.readText('/uploaded/link')).toBe('written')
    const python = await sandbox.exec(['/uploaded/bin/python', '-c', 'print(6 * 7)'])
    expect(python).toMatchObject({ exitCode: 0, stdout: '42\n' })
    // Nothing that comes later is written through it.
    await rm(join(from, 'bin'), { recursive: true })
    await sandbox.exec('rm -r /uploaded/bin; ln -s /etc /uploaded/bin')
    await mkdir(join(from, 'bin/sub'), { recursive: true })
    await writeFile(join(from, 'bin/passwd'), 'mine')
    await files.upload(from, '/uploaded')
    expect(await files.readText('/uploaded/bin/passwd')).toBe('mine')
    expect(await files.readText('/etc/passwd')).toContain('root:')
  })

  test('keep long names that are not UTF-8, up and down', async () => {
    const program = `
import os
os.makedirs(b'/long/d\\xff')
for name in [b'/long/d\\xff/f\\xe9', b'/long/' + b'l\\xfe' * 110, b'/long/' + b'\\xc3\\xbc' * 100]:
    open(name, 'w').write('x')
os.symlink(b'd\\xff/' + b's\\xfd' * 100, b'/long/link')
`
    expect(await sandbox.exec(['python3', '-c', program])).toMatchObject({ exitCode: 0 })
    const target = join(local, 'long')
    await sandbox.files.download('/long', target)
    const names = await readdir(Buffer.from(target), { encoding: 'buffer' })
    const wanted = ['d\xff', 'l\xfe'.repeat(110), '\xc3\xbc'.repeat(100), 'link']
    expect(names.map((name) => name.toString('latin1')).sort()).toEqual(wanted.sort())
    const link = await readlink(join(target, 'link'), { encoding: 'buffer' })
    expect(link.toString('latin1')).toBe(`d\xff/${'s\xfd'.repeat(100)}`)
    await sandbox.files.upload(target, '/long-again')
    const listing = 'cd $0; find . | sort | md5sum; readlink link | md5sum'
    const [one, two] = await Promise.all(
      ['/long', '/long-again'].map((path) => sandbox.exec(['sh', '-c', listing, path])),
    )
    expect(two?.stdout).toBe(one?.stdout)
  })

  test('that do not fit fail with the reason, and leave room again', async () => {
    await using small = await given.client.sandboxes.create({
      from: given.image,
      resources: { memory: '192MiB', disk: '16MiB' },
    })
    const content = Buffer.alloc(20 * MIB, 1)
    await expect(small.files.write('/big', content)).rejects.toMatchObject({
      ...{ code: 'no_space', fault: 'workload', hint: expect.stringContaining('resources.disk') },
    })
    await small.files.remove('/big', { force: true })
    await small.files.write('/fits', content.subarray(0, 8 * MIB))
    expect(await small.files.stat('/fits')).toMatchObject({ sizeBytes: 8 * MIB })
  })
})
