import { SandlotError } from 'sandlot'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type FakeDaemon, startFakeDaemon, until } from './fake-daemon.ts'

let daemon: FakeDaemon
const gates = new Map<string, () => void>()

/** `hold NAME` prints what its stdin said and goes on until the test opens the gate. */
beforeAll(async () => {
  daemon = await startFakeDaemon({
    script: async ({ argv, stdin, signal, env, cwd, user }) => {
      const [name, ...rest] = argv
      if (name === 'hold') {
        await new Promise<void>((resolve) => {
          gates.set(rest[0] ?? '', resolve)
          signal.addEventListener('abort', () => resolve(), { once: true })
        })
        return { stdout: `held ${rest[0]}\n`, exitCode: 4 }
      }
      if (name === 'hang') return { stdout: 'here\n', hangs: true }
      if (name === 'both') return { stdout: 'out', stderr: 'err', exitCode: 3 }
      if (name === 'cat') return { stdout: stdin }
      if (name === 'bytes') return { stdout: new Uint8Array([0xef, 0xbb, 0xbf, 0xff, 0x61]) }
      if (name === 'flood') return { stdout: 'x'.repeat(3_000_000) }
      if (name === 'where') return { stdout: JSON.stringify({ env, cwd, user }) }
      if (name === 'crash') return { dies: 'oom_limit' }
      return {}
    },
  })
})
afterAll(async () => daemon[Symbol.asyncDispose]())

async function newSandbox() {
  return await daemon.client().sandboxes.create({ from: await daemon.image() })
}

describe('a sandbox', () => {
  test('lives, is found, listed by its tags, and ends once', async () => {
    const client = daemon.client()
    const { id: image } = await daemon.image()
    const tags = { suite: 'life' }
    const sandbox = await client.sandboxes.create({ from: image, tags, env: { A: '1' } })
    expect(await sandbox.view()).toMatchObject({ state: 'running', image, tags })
    expect((await client.sandboxes.get(sandbox.id)).id).toBe(sandbox.id)
    const listed = await Array.fromAsync(client.sandboxes.list({ tags }))
    expect(listed.map(({ id }) => id)).toEqual([sandbox.id])
    expect((await sandbox.stop()).ending?.kind).toBe('stopped')
    expect((await sandbox.stop()).state).toBe('stopped')
    await expect(sandbox.exec('true')).rejects.toMatchObject({ code: 'sandbox_gone' })
    await expect(client.sandboxes.get('sb_aaaaaaaaaaaaaaaaaaaa')).rejects.toMatchObject({
      code: 'sandbox_unknown',
    })
  })

  test('stops at the end of its block, and with all of its tags', async () => {
    const client = daemon.client()
    const from = await daemon.image()
    let id: string
    {
      await using sandbox = await client.sandboxes.create({ from })
      id = sandbox.id
    }
    expect((await (await client.sandboxes.get(id)).view()).state).toBe('stopped')
    const tags = { batch: 'b1' }
    await Promise.all(Array.from({ length: 40 }, () => client.sandboxes.create({ from, tags })))
    expect(await client.sandboxes.stopAll({ tags })).toBe(40)
    expect(await Array.fromAsync(client.sandboxes.list({ tags }))).toEqual([])
  })

  test('is stopped when its creation was aborted', async () => {
    const client = daemon.client()
    const from = await daemon.image()
    const tags = { aborted: 'yes' }
    const controller = new AbortController()
    const creating = client.sandboxes.create({ from: from.id, tags, signal: controller.signal })
    await until(async () => {
      controller.abort(new Error('not any more'))
      return true
    })
    await expect(creating).rejects.toThrow('not any more')
    await until(async () => (await Array.fromAsync(client.sandboxes.list({ tags }))).length === 0)
  })

  test('is refused with a hint where its limits contradict one another', async () => {
    const creating = daemon.client().sandboxes.create({
      from: await daemon.image(),
      resources: { memory: '1MiB' },
    })
    const error = await creating.catch((thrown: SandlotError) => thrown)
    expect(error).toBeInstanceOf(SandlotError)
    expect(error).toMatchObject({ code: 'invalid_request', fault: 'caller', retry: false })
    await expect(
      daemon.client().sandboxes.create({ from: 'im_aaaaaaaaaaaaaaaaaaaa' }),
    ).rejects.toMatchObject({ code: 'image_unknown' })
  })
})

describe('a buffered command', () => {
  test('is a result, whatever its exit code', async () => {
    await using sandbox = await newSandbox()
    expect(await sandbox.exec(['both'])).toMatchObject({
      exitCode: 3,
      signal: null,
      timedOut: false,
      stdout: 'out',
      stderr: 'err',
      stdoutDroppedBytes: 0,
    })
    expect((await sandbox.exec(['cat'], { stdin: 'ä\n' })).stdout).toBe('ä\n')
    const { stdoutBytes, stdout } = await sandbox.exec(['bytes'])
    expect([...stdoutBytes]).toEqual([0xef, 0xbb, 0xbf, 0xff, 0x61])
    expect(stdout).toBe('\ufeff\ufffda')
  })

  test('takes its environment, directory and user', async () => {
    await using sandbox = await newSandbox()
    const options = { env: { B: '2' }, cwd: '/tmp', user: '7:8', timeout: '10s' }
    const { stdout } = await sandbox.exec(['where'], options)
    expect(JSON.parse(stdout)).toMatchObject({ cwd: '/tmp', user: '7:8', env: { B: '2' } })
  })

  test('is refused clearly where its arguments or its environment are too long', async () => {
    const [half, long] = ['x'.repeat(40_000), 'x'.repeat(100_000)]
    const env = { A: half }
    await using full = await daemon.client().sandboxes.create({ from: await daemon.image(), env })
    const tooLong: [Parameters<typeof full.exec>, RegExp][] = [
      [[['where', half]], /arguments \(\d+ bytes\) and its environment \(\d+ bytes/],
      [[['where'], { env: { B: half } }], /environment \(\d+ bytes, the sandbox's included\)/],
      [[['where', half], { env: { B: half } }], /arguments \(\d+ bytes\) and its environment/],
      [[['where', long]], /^the command is longer than 49152 bytes$/],
      [[`where ${long}`], /^the command is longer than 49152 bytes$/],
      [[['where'], { env: { B: long } }], /^the environment of the command is longer than 49152 b/],
      [[['where', 'ü'.repeat(25_000)]], /longer than 49152 bytes/],
    ]
    for (const [given, message] of tooLong) {
      const refused = {
        code: 'too_large',
        message: expect.stringMatching(message),
        hint: expect.stringContaining('to a file in the sandbox'),
      }
      await expect(full.exec(...given), String(message)).rejects.toMatchObject(refused)
      const [command, options] = given
      const stream = full.exec(command, { ...options, stream: true })
      await expect(stream.result, String(message)).rejects.toMatchObject(refused)
    }
    expect(JSON.parse((await full.exec(['where'])).stdout).env.A).toBe(half)
  })

  test('is killed at its deadline, and with its signal', async () => {
    await using sandbox = await newSandbox()
    expect(await sandbox.exec(['hang'], { timeout: 50 })).toMatchObject({
      timedOut: true,
      killed: true,
      stdout: 'here\n',
    })
    const controller = new AbortController()
    const running = sandbox.exec(['hang'], { signal: controller.signal })
    await until(async () => (await sandbox.execs()).some((each) => each.running))
    controller.abort(new Error('enough'))
    await expect(running).rejects.toThrow('enough')
    await until(async () => (await sandbox.execs()).every((each) => !each.running))
    const gone = sandbox.exec(['hang'], { signal: AbortSignal.abort(new Error('before')) })
    await expect(gone).rejects.toThrow('before')
    expect(await sandbox.execs()).toHaveLength(2)
  })

  test('says who is at fault when its sandbox dies of its own limit', async () => {
    const sandbox = await newSandbox()
    await expect(sandbox.exec(['crash'])).rejects.toMatchObject({
      name: 'SandlotError',
      code: expect.stringMatching(/^sandbox_/),
    })
    expect((await sandbox.view()).ending?.kind).toBe('oom_limit')
  })
})

describe('a streaming command', () => {
  test('gives its output as it comes, from both channels', async () => {
    await using sandbox = await newSandbox()
    const execution = sandbox.exec(['both'], { stream: true })
    const chunks = await Array.fromAsync(execution)
    expect(chunks.map(({ channel, text, offset }) => [channel, text, offset])).toEqual([
      ['stdout', 'out', 0],
      ['stderr', 'err', 0],
    ])
    expect(await execution.result).toMatchObject({ exec: execution.id, exitCode: 3 })
  })

  test('has a result for whoever reads nothing, or only a part', async () => {
    await using sandbox = await newSandbox()
    expect(await sandbox.exec(['both'], { stream: true }).result).toMatchObject({ exitCode: 3 })
    expect(await sandbox.exec(['flood'], { stream: true }).wait()).toMatchObject({
      stdout: { totalBytes: 3_000_000 },
    })
    const left = sandbox.exec(['flood'], { stream: true })
    for await (const _ of left) break
    expect(await left.result).toMatchObject({ exitCode: 0 })
  })

  test('reads what is written to it', async () => {
    await using sandbox = await newSandbox()
    const execution = sandbox.exec(['cat'], { stream: true, stdin: true })
    await execution.write('one ')
    await execution.write(Buffer.from('two'))
    await execution.closeStdin()
    let text = ''
    for await (const chunk of execution) text += chunk.text
    expect(text).toBe('one two')
    await expect(execution.write('more')).rejects.toMatchObject({ code: 'cancelled' })
  })

  test('reads a stream, and fails with the one that fails', async () => {
    await using sandbox = await newSandbox()
    async function* words(fails: boolean) {
      yield 'a'.repeat(200_000)
      if (fails) throw new Error('no more words')
      yield new Uint8Array(400_000).fill(0x62)
    }
    const whole = await sandbox.exec(['cat'], { stdin: words(false) })
    expect(whole.stdoutBytes.length).toBe(600_000)
    const broken = sandbox.exec(['cat'], { stdin: words(true) })
    await expect(broken).rejects.toThrow('the source of stdin failed')
    await until(async () => (await sandbox.execs()).every((each) => !each.running))
  })

  test('is killed by hand, by its signal and at the end of its block', async () => {
    await using sandbox = await newSandbox()
    const byHand = sandbox.exec(['hang'], { stream: true })
    await byHand.kill(15)
    expect(await byHand.result).toMatchObject({ signal: 15, killed: true, exitCode: null })
    await byHand.kill()

    const controller = new AbortController()
    const bySignal = sandbox.exec(['hang'], { stream: true, signal: controller.signal })
    const reading = (async () => {
      for await (const _ of bySignal) controller.abort(new Error('seen enough'))
    })()
    await expect(reading).rejects.toThrow('seen enough')
    await expect(bySignal.result).rejects.toThrow('seen enough')
    // Whoever reads it is told at once, and does not wait until it is dead.
    await until(async () => (await sandbox.execs()).every((each) => !each.running))
    {
      await using execution = sandbox.exec(['hang'], { stream: true })
      execution.id satisfies string
    }
    expect((await sandbox.execs()).map((each) => each.running)).toEqual([false, false, false])
  })

  test('can be read again from what is kept', async () => {
    await using sandbox = await newSandbox()
    const { exec } = await sandbox.exec(['both'], { stream: true }).result
    const parts = await Array.fromAsync(sandbox.output(exec, { channel: 'stderr' }))
    expect(Buffer.concat(parts).toString()).toBe('err')
  })
})

describe('a daemon that is started again in the middle', () => {
  test('finds the command that runs, and gives each byte once', async () => {
    await using own = await startFakeDaemon({
      script: async ({ argv }) => {
        await new Promise<void>((resolve) => gates.set(argv[0] ?? '', resolve))
        return { stdout: 'first second', exitCode: 5 }
      },
    })
    const sandbox = await own.client().sandboxes.create({ from: await own.image() })
    const buffered = sandbox.exec(['one'])
    const streamed = sandbox.exec(['two'], { stream: true })
    await until(() => gates.has('one') && gates.has('two'))
    await own.restart()
    gates.get('one')?.()
    gates.get('two')?.()
    expect(await buffered).toMatchObject({ exitCode: 5, stdout: 'first second' })
    const chunks = await Array.fromAsync(streamed)
    expect(chunks.map(({ text }) => text).join('')).toBe('first second')
    expect(await streamed.result).toMatchObject({ exitCode: 5 })
    expect(await sandbox.execs()).toHaveLength(2)
  })

  test('takes a command that is started while there is none', async () => {
    await using own = await startFakeDaemon()
    const sandbox = await own.client().sandboxes.create({ from: await own.image() })
    let running: Promise<{ stdout: string }> | undefined
    await own.restart(async () => {
      running = sandbox.exec(['echo', 'late'])
    })
    expect((await running)?.stdout).toBe('late\n')
    expect(await sandbox.execs()).toHaveLength(1)
  })

  test('loses a command that was being fed, and says so', async () => {
    await using own = await startFakeDaemon()
    const sandbox = await own.client().sandboxes.create({ from: await own.image() })
    const execution = sandbox.exec(['cat'], { stream: true, stdin: true })
    await execution.write('half of')
    await until(async () => (await sandbox.execs()).some((each) => each.running))
    await own.restart()
    await expect(execution.result).rejects.toMatchObject({
      code: 'connection_lost',
      fault: 'platform',
    })
    await until(async () => (await sandbox.execs()).every((each) => !each.running))
  })
})
