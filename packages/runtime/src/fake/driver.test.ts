import { temporaryDirectory } from '@sandlot/testkit'
import { describe, expect, test } from 'vitest'
import type { SandboxSpec } from '../driver.ts'
import { GuestLost } from '../guest/guest-error.ts'
import { FakeDriver } from './driver.ts'
import type { FakeClock, FakeReply } from './script.ts'

const MIB = 2 ** 20
const spec = (id: string, over: Partial<SandboxSpec> = {}): SandboxSpec => ({
  id,
  layers: [],
  limits: { memoryBytes: 64 * MIB, cpus: 1, pidsMax: 64, diskBytes: 16 * MIB, nofileMax: 256 },
  hostname: 'box',
  detachedMs: 60_000,
  ...over,
})
const command = (exec: string, ...argv: string[]) => ({
  world: 'main',
  exec,
  argv,
  env: [],
  cwd: '/',
})

/** Time passes when the test says so. */
function handClock(): FakeClock & { pass(ms: number): void; readonly timers: number } {
  let now = 0
  const timers = new Map<() => void, number>()
  return {
    now: () => now,
    after: (delayMs, call) => {
      const timer = () => call()
      timers.set(timer, now + delayMs)
      return () => void timers.delete(timer)
    },
    pass: (ms) => {
      now += ms
      for (const [call, at] of [...timers]) {
        if (at > now || !timers.delete(call)) continue
        call()
      }
    },
    get timers() {
      return timers.size
    },
  }
}

describe('the fake driver', () => {
  test('a script decides what commands do', async () => {
    await using driver = new FakeDriver({
      script: ({ argv, files, stdin }) => {
        files.put('/work/seen', stdin)
        return { exitCode: argv.length, stdout: 'out', stderr: 'err' }
      },
    })
    const { guest } = await driver.create(spec('sb_1'))
    const stdin = Buffer.from('in')
    const outcome = await guest.exec.run({ ...command('a', 'x', 'y'), stdin })
    expect(outcome).toMatchObject({ exitCode: 2, timedOut: false, killed: false })
    expect(Buffer.from(outcome.stdout).toString()).toBe('out')
    const { content } = await guest.files.read('main', '/work/seen')
    expect(Buffer.concat(await Array.fromAsync(content)).toString()).toBe('in')
  })

  test('time is the clock alone: delays, deadlines, hangs', async () => {
    const clock = handClock()
    const replies: Record<string, FakeReply> = {
      slow: { delayMs: 1000, stdout: 'late' },
      hangs: { hangs: true, stdout: 'partial' },
    }
    await using driver = new FakeDriver({ clock, script: ({ exec }) => replies[exec] ?? {} })
    const { guest } = await driver.create(spec('sb_1'))
    const slow = guest.exec.run(command('slow', 'x'))
    const hangs = guest.exec.run({ ...command('hangs', 'x'), timeoutMs: 500 })
    clock.pass(500)
    const cut = await hangs
    expect(cut).toMatchObject({ timedOut: true, killed: true, signal: 9, durationUs: 500_000 })
    expect(Buffer.from(cut.stdout).toString()).toBe('partial')
    clock.pass(500)
    expect((await slow).exitCode).toBe(0)
    expect(clock.timers).toBe(0)
  })

  test('a command can end its sandbox, and everybody hears of it', async () => {
    await using driver = new FakeDriver({ script: () => ({ dies: 'oom_limit' }) })
    const sandbox = await driver.create(spec('sb_1'))
    await expect(sandbox.guest.exec.run(command('a', 'eat'))).rejects.toBeInstanceOf(GuestLost)
    expect((await sandbox.gone).kind).toBe('oom_limit')
    expect((await sandbox.guest.lost).cause).toBe('exited')
    expect((await driver.stop(sandbox)).kind).toBe('oom_limit')
    await expect(driver.usage(sandbox)).rejects.toMatchObject({ code: 'sandbox_gone' })
  })

  test('starts fail and hang on cue, and leave nothing', async () => {
    await using driver = new FakeDriver({
      onStart: (start) => (start === 1 ? 'fail' : start === 2 ? 'hang' : undefined),
    })
    await expect(driver.createBlank()).rejects.toMatchObject({ code: 'create_failed' })
    const signal = AbortSignal.timeout(1)
    await expect(driver.createBlank({ signal })).rejects.toThrow()
    expect(driver.machine.size).toBe(0)
    await driver.createBlank()
  })

  test('one that is restored ahead has the files of the checkpoint, and its fixed limits', async () => {
    await using directory = await temporaryDirectory()
    await using driver = new FakeDriver({ capabilities: { memorySnapshot: true } })
    const original = await driver.create(spec('sb_1', { checkpointable: true }))
    await original.guest.files.write('main', '/kept', Buffer.from('kept'))
    const { layers, limits } = original.spec
    const checkpoint = { directory: directory.path, layers, limits }
    await driver.checkpoint(original, directory.path, { leaveRunning: false })
    const blank = await driver.createBlank({ checkpoint })
    const copy = await driver.checkout(blank, spec('sb_2'))
    expect(copy).toMatchObject({ id: 'sb_2', hostId: blank.hostId, spec: { checkpointable: true } })
    const { content } = await copy.guest.files.read('main', '/kept')
    expect(Buffer.concat(await Array.fromAsync(content)).toString()).toBe('kept')
    const other = { ...limits, pidsMax: 1 }
    await expect(
      driver.createBlank({ checkpoint: { ...checkpoint, limits: other } }),
    ).rejects.toMatchObject({ code: 'snapshot_incompatible' })
    const next = await driver.createBlank({ checkpoint })
    const taken = driver.checkout(next, { ...spec('sb_3'), limits: other })
    await expect(taken).rejects.toMatchObject({ code: 'create_failed' })
    expect(await next.gone).toMatchObject({ kind: 'stopped' })
  })

  test('16,000 idle sandboxes hold no timer', async () => {
    const clock = handClock()
    await using driver = new FakeDriver({ clock })
    const ids = Array.from({ length: 16_000 }, (_, n) => `sb_${n}`)
    const sandboxes = await Promise.all(ids.map((id) => driver.create(spec(id))))
    expect(clock.timers).toBe(0)
    const last = sandboxes.at(-1)
    expect((await last?.guest.exec.run(command('a', 'true')))?.exitCode).toBe(0)
  })

  test('a lifetime ends a sandbox on the clock', async () => {
    const clock = handClock()
    await using driver = new FakeDriver({ clock })
    const sandbox = await driver.create(spec('sb_1', { lifetimeMs: 1000 }))
    clock.pass(1000)
    expect((await sandbox.gone).kind).toBe('expired')
  })
})
