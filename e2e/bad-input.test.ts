import { randomBytes } from 'node:crypto'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Image, type MapOptions, SandlotError } from 'sandlot'
import { expect, test } from 'vitest'
import { RealDaemon } from './harness/daemon.ts'
import { story } from './harness/story.ts'

const MIB = 2 ** 20

await story('bad input', { pool: 1 }, (given) => {
  const errorOf = async (work: Promise<unknown>): Promise<SandlotError> => {
    const error = await work.then(
      () => new Error('it went well'),
      (thrown: unknown) => thrown,
    )
    expect(error).toBeInstanceOf(SandlotError)
    const { message, hint } = error as SandlotError
    expect(message).not.toBe('')
    expect(hint).not.toBe('')
    return error as SandlotError
  }

  const episode = async () => ({ reward: 1 })
  const runOf = (tasks: unknown, options: Partial<MapOptions<{ id: string }>> = {}) =>
    given.client.rollouts.map(tasks as { id: string }[], episode, {
      from: given.image,
      ...options,
    })

  test.for([
    ['none', []],
    ['null', null],
    ['a number', 7],
    ['a text', 'tasks'],
    ['an object', { id: 'a' }],
  ] as const)('tasks that are %s', async ([, tasks]) => {
    const error = await errorOf(runOf(tasks).wait())
    expect(error).toMatchObject({ code: 'invalid_request', fault: 'caller', retry: false })
    expect(error.message).toMatch(/task/)
  })

  test('tasks of one key', async () => {
    const tasks = [{ id: 'a' }, { id: 'b' }, { id: 'a' }]
    const run = runOf(tasks)
    const error = await errorOf(run.wait())
    expect(error).toMatchObject({ code: 'task_conflict', hint: expect.stringContaining('key:') })
    expect(error.message).toMatch(/tasks 0 and 2 have the same key "a"/)
    await run.cancel()
    const rows = await runOf(tasks, { key: ({ id }, index) => `${id}${index}` }).wait()
    expect(rows.map(({ key }) => key).sort()).toEqual(['a0', 'a2', 'b1'])
  })

  test('a run of the same name', async () => {
    const tasks = [{ id: 'a' }]
    const name = 'named'
    const [row] = await runOf(tasks, { name }).wait()
    expect(row).toMatchObject({ outcome: 'graded', reward: 1 })
    expect(await errorOf(runOf(tasks, { name }).wait())).toMatchObject({ code: 'run_exists' })
    const other = await errorOf(runOf(tasks, { name, version: '2' }).wait())
    expect(other).toMatchObject({ code: 'run_differs', hint: expect.stringContaining('replace') })
    expect(await runOf(tasks, { name, ifExists: 'attach' }).wait()).toEqual([row])
    const [again] = await runOf(tasks, { name, version: '2', ifExists: 'replace' }).wait()
    expect(again).toMatchObject({ outcome: 'graded', attempt: 1 })
    for (const bad of ['', '../etc', 'a b', 'x'.repeat(300)]) {
      expect(await errorOf(runOf(tasks, { name: bad }).wait())).toMatchObject({
        code: 'invalid_request',
      })
    }
  })

  test('limits and places that cannot be', async () => {
    const create = (options: object) =>
      errorOf(given.client.sandboxes.create({ from: given.image, ...options }))
    const message = async (options: object) => (await create(options)).message
    expect(await message({ resources: { memory: '1MiB' } })).toMatch(/96MiB/)
    expect(await message({ resources: { memory: 'much' } })).toMatch(/"much" is not a size/)
    expect(await message({ resources: { disk: '500TiB' } })).toMatch(/resources.disk/)
    expect(await message({ resources: { cpu: 0 } })).toMatch(/cpu/)
    expect(await message({ resources: { pids: 100_000 } })).toMatch(/pids/)
    expect(await message({ keepWarm: 'soon' })).toMatch(/"soon" is not a duration/)
    expect(await message({ env: { 'A=B': 'x' } })).toMatch(/env/)
    expect(await message({ workdir: 'relative' })).toMatch(/workdir/)
    expect(await message({ nonsense: true })).toMatch(/nonsense/)
    expect(await message({ resources: { memory: '100TiB' } })).toMatch(/100 TiB/)
    const nobody = 'im_aaaaaaaaaaaaaaaaaaaa'
    expect(await create({ from: nobody })).toMatchObject({ code: 'image_unknown' })
    expect(await errorOf(runOf([{ id: 'a' }], { from: nobody }).wait())).toMatchObject({
      code: 'image_unknown',
    })
    expect(await Array.fromAsync(given.client.sandboxes.list())).toEqual([])
  })

  test('images of nothing, of a directory as a tar, of rubbish', async () => {
    const build = (image: Parameters<typeof given.client.images.build>[0]) =>
      errorOf(given.client.images.build(image))
    expect(await build(Image.tar('/nowhere/at/all'))).toMatchObject({ code: 'not_found' })
    expect(await build(Image.tar('/etc'))).toMatchObject({ code: 'invalid_request' })
    expect(await build(Image.directory('/etc/passwd'))).toMatchObject({ code: 'invalid_request' })
    const rubbish = join(given.daemon.dataDirectory, '../rubbish')
    await writeFile(rubbish, randomBytes(4_096))
    const error = await build(Image.tar(rubbish))
    expect(error.fault).toBe('caller')
    expect(error.code).toMatch(/^image_/)
    expect(await build(Image.debian('No Such Suite!'))).toMatchObject({ code: 'invalid_request' })
  })

  test('commands that cannot start, users and directories that are not there', async () => {
    await using sandbox = await given.client.sandboxes.create({ from: given.image })
    const code = async (...argument: Parameters<typeof sandbox.exec>) =>
      (await errorOf(sandbox.exec(...argument) as Promise<unknown>)).code
    await sandbox.files.write('/lost', '#!/no/interpreter\n', { mode: 0o755 })
    for (const [argv, cwd, why, errno] of [
      [
        ['no-such-program'],
        '/',
        /: no-such-program: not found in the directories of PATH/,
        'ENOENT',
      ],
      [['/no/such'], '/', /: \/no\/such: no such file in the sandbox \(ENOENT\)$/, 'ENOENT'],
      [['/lost'], '/', /: \/lost: it is there, but the interpreter/, 'ENOENT'],
      [['/etc/passwd'], '/', /: \/etc\/passwd: it is not executable for this user/, 'EACCES'],
      [['/tmp'], '/', /: \/tmp: it is a directory/, 'EACCES'],
      [['true'], '/nowhere', /: the working directory \/nowhere does not exist/, 'ENOENT'],
      [['true'], '/etc/passwd', /: the working directory \/etc\/passwd is not a dir/, 'ENOTDIR'],
    ] as const) {
      expect(await errorOf(sandbox.exec(argv, { cwd })), argv[0]).toMatchObject({
        code: 'exec_failed',
        message: expect.stringMatching(why),
        details: { errno },
      })
    }
    expect(await code('true', { user: 'nobody-of-this-name' })).toBe('exec_failed')
    expect(await code([])).toBe('invalid_request')
    expect(await code('')).toBe('invalid_request')
    expect(await code('a\0b')).toBe('invalid_request')
    expect(await code('true', { timeout: 'soon' })).toBe('invalid_request')
    expect(await code(['true', 'x'.repeat(100_000)])).toMatch(/^(invalid_request|too_large)$/)
    expect(await sandbox.exec('echo fine')).toMatchObject({ stdout: 'fine\n' })
  })

  test('a disk of the daemon that is full: nothing is lost, and it goes on when there is room', async () => {
    const daemon = await RealDaemon.start({ pool: 0, dataBytes: 48 * MIB })
    try {
      const client = daemon.client()
      const sandbox = await client.sandboxes.create({ from: given.image })
      const done = await client.rollouts
        .map([{ id: 'before' }], episode, { from: given.image, name: 'before' })
        .wait()
      const ballast = join(daemon.dataDirectory, 'ballast')
      await writeFile(ballast, Buffer.alloc(64 * MIB)).catch(() => {})
      const tar = join(daemon.dataDirectory, '../large.tar')
      await writeFile(tar, randomBytes(4 * MIB))
      const error = await errorOf(client.images.build(Image.tar(tar)))
      expect(error).toMatchObject({ code: 'disk_full', fault: 'platform', retry: true })
      expect(await sandbox.exec('echo alive')).toMatchObject({ stdout: 'alive\n' })
      expect(await (await client.rollouts.get('before')).wait()).toEqual(done)

      const during = client.rollouts.map([{ id: 'during' }], episode, {
        ...{ from: given.image, name: 'during' },
      })
      const created = during.created.then(
        () => 'created',
        () => 'refused',
      )
      await rm(ballast)
      if ((await created) === 'refused') {
        const again = client.rollouts.map([{ id: 'during' }], episode, {
          ...{ from: given.image, name: 'during' },
        })
        expect(await again.wait()).toMatchObject([{ outcome: 'graded' }])
      } else expect(await during.wait()).toMatchObject([{ outcome: 'graded' }])
      await sandbox.stop()
    } finally {
      await daemon.close()
    }
  })
})
