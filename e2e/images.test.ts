import { mkdir, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { OciRegistry, ociLayout, tarArchive, temporaryDirectory } from '@sandlot/testkit'
import { Image, type ImageDescription, type Sandlot, SandlotError } from 'sandlot'
import { expect, test } from 'vitest'
import { story } from './harness/story.ts'
import { until } from './harness/until.ts'

const [X86_64, AARCH64] = [62, 183]

/** A static program of a few instructions that exits with 42, or says that it is for another machine. */
function programOf(machine: number): Buffer {
  const code = Buffer.from('bf2a000000b83c0000000f05', 'hex')
  const [headerBytes, segmentBytes, base] = [64, 56, 0x400000n]
  const start = headerBytes + segmentBytes
  const program = Buffer.alloc(start + code.length)
  program.write('\x7fELF\x02\x01\x01', 0, 'latin1')
  program.writeUInt16LE(2, 16)
  program.writeUInt16LE(machine, 18)
  program.writeUInt32LE(1, 20)
  program.writeBigUInt64LE(base + BigInt(start), 24)
  program.writeBigUInt64LE(BigInt(headerBytes), 32)
  program.writeUInt16LE(headerBytes, 52)
  program.writeUInt16LE(segmentBytes, 54)
  program.writeUInt16LE(1, 56)
  program.writeUInt32LE(1, headerBytes)
  program.writeUInt32LE(5, headerBytes + 4)
  for (const at of [16, 24]) program.writeBigUInt64LE(base, headerBytes + at)
  for (const at of [32, 40]) program.writeBigUInt64LE(BigInt(program.length), headerBytes + at)
  program.writeBigUInt64LE(0x1000n, headerBytes + 48)
  code.copy(program, start)
  return program
}

/** Text that no earlier run has built. */
const fresh = () => `run-${Date.now()}-${Math.random().toString(36).slice(2)}`

async function output(client: Sandlot, image: string, command: string): Promise<string> {
  await using sandbox = await client.sandboxes.create({ from: image })
  const { stdout, stderr } = await sandbox.exec(command)
  return stdout + stderr
}

await story('images that are built in steps', { pool: 2 }, (given) => {
  const base = (): ImageDescription => Image.fromId(given.image).network('none')

  test('have what the steps made, run as they said, and are found at once', async () => {
    await using directory = await temporaryDirectory()
    const app = join(directory.path, 'app')
    await mkdir(app)
    await writeFile(join(app, 'main.py'), 'print("hello from the app")\n')
    const mark = fresh()
    const tools = base().run(`mkdir /out && echo ${mark} > /out/tool && ln -s tool /out/link`)
    const image = base()
      .env({ APP: '/srv/app', MARK: mark })
      .workdir('/srv/app')
      .copy(app, '.', { owner: 'www-data' })
      .copyFrom(tools, '/out', '/opt/out')
      .run(
        'rm /etc/issue && rm -r /usr/share/doc && mkdir /usr/share/doc && touch /usr/share/doc/new',
      )
      .run('echo "$MARK $(pwd) $(id -un)" > /tmp/seen && chmod 711 /srv/app && python3 main.py')
      .user('www-data')
    const lines: string[] = []
    const built = await given.client.images.build(image, { onLog: (line) => lines.push(line) })
    expect(lines).toContain('[6/7] hello from the app')
    expect(built.config).toMatchObject({ workdir: '/srv/app', user: 'www-data' })
    const shown = await output(
      given.client,
      built.id,
      'cat /tmp/seen /opt/out/link; id -un; stat -c "%U %a" . main.py; ls /usr/share/doc; ls /etc/issue 2>&1',
    )
    expect(shown.split('\n')).toEqual([
      `${mark} /srv/app root`,
      mark,
      'www-data',
      'root 711',
      'www-data 644',
      'new',
      expect.stringContaining('No such file'),
      '',
    ])
    const again: string[] = []
    const found = await given.client.images.build(image, { onLog: (line) => again.push(line) })
    expect([found.id, again]).toEqual([built.id, []])
    expect(await given.client.images.verify(built.id)).toEqual([])
  })

  test('run what is copied over an earlier copy, not what was made of that', async () => {
    await using directory = await temporaryDirectory()
    const mark = fresh()
    const module = join(directory.path, 'mod.py')
    const put = (value: number) => writeFile(module, `VALUE = ${value}  # ${mark}\n`)
    await put(1)
    const anHourAgo = Date.now() / 1000 - 3600
    await utimes(module, anHourAgo, anHourAgo)
    const compiled = base()
      .copy(directory.path, '/work')
      .workdir('/work')
      .run('python3 -m compileall -q . && cp mod.py made')
    const { id } = await given.client.images.build(compiled)
    await put(2)
    const next = Image.fromId(id).copy(directory.path, '/work')
    const { id: changed } = await given.client.images.build(next)
    const look =
      'python3 -c "import mod; print(mod.VALUE)"; test mod.py -nt made && echo newer; stat -c %Y mod.py'
    const { mtimeMs } = await stat(module)
    expect(await output(given.client, changed, look)).toBe(
      `2\nnewer\n${Math.floor(mtimeMs / 1000)}\n`,
    )
  })

  test('are built once, however many ask', async () => {
    const mark = fresh()
    // Who comes while it runs hears what it says from then on.
    const image = base().run(`sleep 8; echo ${mark}; cat /proc/sys/kernel/random/uuid > /once`)
    const logs = [[], []] as string[][]
    const [one, other] = await Promise.all(
      logs.map((lines) =>
        given.client.images.build(image, { onLog: (line) => void lines.push(line) }),
      ),
    )
    expect(one?.id).toBe(other?.id)
    expect(logs.map((lines) => lines.filter((line) => line.endsWith(mark)).length)).toEqual([1, 1])
  })

  test('have commands of any length, and a time for each', async () => {
    const long = `${'# a long script\n'.repeat(20_000)}set -e\necho "$0 $(id -un)" > /seen`
    const image = base().user('www-data').run('true').user('root').run(long)
    const built = await given.client.images.build(image)
    const shown = await output(given.client, built.id, 'cat /seen; ls -A /dev/shm')
    expect(shown).toBe('/bin/sh root\n')
    const hangs = base().run(`echo ${fresh()}; sleep 100`, { timeout: '5s' })
    await expect(given.client.images.build(hangs)).rejects.toMatchObject({
      code: 'image_build_failed',
      message: expect.stringMatching(/the command did not end within 5s:\nrun-/),
    })
  })

  test('say which step failed and how, and go on after the step that was right', async () => {
    const mark = fresh()
    const right = base().run(`echo ${mark} > /right`)
    const failing = right.run('echo before; echo wrong >&2; exit 7').run('echo never')
    const error = await given.client.images.build(failing).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(SandlotError)
    expect(error).toMatchObject({
      code: 'image_build_failed',
      message: expect.stringMatching(
        /step 2 of 3 \(run echo before.*exit code 7:\n(before\nwrong|wrong\nbefore)/s,
      ),
      details: { exitCode: 7 },
    })
    const lines: string[] = []
    await given.client.images.build(right.run('true'), { onLog: (line) => lines.push(line) })
    expect(lines[0]).toBe('steps 1 to 1 of 2 are built already')
  })

  test('end with whoever waits for them, and with a daemon that is killed', async () => {
    const hanging = base().run(`echo ${fresh()}; echo begun; sleep 1000`)
    const leaver = new AbortController()
    const onLog = (line: string) => line.endsWith('begun') && leaver.abort()
    await expect(
      given.client.images.build(hanging, { onLog, signal: leaver.signal }),
    ).rejects.toThrow()
    await until(
      'the step’s sandbox is gone',
      async () => (await given.daemon.hostIds()).length <= 2,
    )

    const begun = Promise.withResolvers<void>()
    const mark = fresh()
    const gate = base()
      .run(`echo ${mark} > /first`)
      .run('echo begun; if [ ! -e /second ]; then sleep 3; fi; touch /second')
    const onBegun = (line: string) => void (line.endsWith('begun') && begun.resolve())
    const building = given.client.images.build(gate, { onLog: onBegun })
    await begun.promise
    await given.daemon.kill()
    await given.daemon.start()
    // The client waits the outage out and asks again: the first step is found, the second begins anew.
    const image = await building
    expect(await output(given.client, image.id, 'cat /first; ls /second')).toBe(
      `${mark}\n/second\n`,
    )
    expect(await given.client.images.verify(image.id)).toEqual([])
    await until('both sandboxes are gone', async () => (await given.daemon.hostIds()).length <= 2)
  })

  test('from a registry and from a bare layout say what they lack', async () => {
    await using registry = await OciRegistry.start()
    const layers = [tarArchive([{ path: 'etc/made', content: fresh() }])]
    registry.push('bare', 'v1', { layers, config: { User: '1234' } })
    const bare = Image.registry(`${registry.host}/bare:v1`).network('none')
    const { id, source, config } = await given.client.images.build(bare)
    expect(source).toMatchObject({ reference: expect.stringMatching(/bare:v1@sha256:/) })
    expect(config.user).toBe('1234')
    await using sandbox = await given.client.sandboxes.create({ from: id })
    expect(await sandbox.files.readText('/etc/made')).toMatch(/^run-/)
    await expect(given.client.images.build(bare.run('true'))).rejects.toMatchObject({
      code: 'image_build_failed',
      hint: expect.stringContaining('/bin/sh'),
    })
    await expect(
      given.client.images.build(Image.registry(`${registry.host}/bare:v2`)),
    ).rejects.toMatchObject({ code: 'registry_image_unknown' })
  })

  test('of one program and nothing else, and of another machine’s programs', async () => {
    await using directory = await temporaryDirectory()
    await writeFile(join(directory.path, 'exits'), programOf(X86_64), { mode: 0o755 })
    await writeFile(join(directory.path, 'foreign'), programOf(AARCH64), { mode: 0o755 })
    const bare = Image.directory(directory.path).network('none')
    const { id } = await given.client.images.build(bare)
    await using sandbox = await given.client.sandboxes.create({ from: id })
    expect(await sandbox.exec(['/exits'])).toMatchObject({ exitCode: 42 })
    expect(await sandbox.exec(['/exits'], { user: '1234:5', cwd: '/tmp' })).toMatchObject({
      exitCode: 42,
    })
    await sandbox.files.write('/tmp/a', 'x')
    const failure = async (command: string | string[], options = {}) =>
      await sandbox.exec(command, options).then(
        (end) => end,
        (error: SandlotError) => `${error.code}: ${error.message}`,
      )
    expect([
      await failure('true'),
      await failure(['/exits'], { user: 'nobody' }),
      await failure(['/foreign']),
    ]).toEqual([
      expect.stringContaining('/bin/sh: no such file in the sandbox'),
      expect.stringContaining('user nobody is not known in this world'),
      expect.stringContaining('/foreign: it is no program that this machine runs'),
    ])
    const stepped = bare.run(['/exits'])
    await expect(given.client.images.build(stepped)).rejects.toMatchObject({
      message: expect.stringContaining('the command ended with exit code 42'),
    })
    await expect(given.client.images.build(bare.run(['/foreign']))).rejects.toMatchObject({
      code: 'image_build_failed',
      message: expect.stringContaining('did not start'),
    })
  })

  test('go out as an archive and come back', async () => {
    await using directory = await temporaryDirectory()
    const layers = [tarArchive([{ path: 'a', content: fresh() }]), tarArchive([{ path: 'b' }])]
    const path = join(directory.path, 'layout.tar')
    await writeFile(path, ociLayout({ layers, config: { Cmd: ['/a'] } }))
    const image = await given.client.images.build(Image.oci(path))
    const archive = join(directory.path, 'archive.tar')
    await writeFile(archive, given.client.images.export(image.id))
    const back = await given.client.images.build(Image.oci(archive))
    expect(back.config).toEqual(image.config)
    expect(back.layers.map(({ digest }) => digest)).toEqual(
      image.layers.map(({ digest }) => digest),
    )
  })
})
