import { access } from 'node:fs/promises'
import { expect } from 'vitest'
import type { Sandbox } from '../driver.ts'
import { askCounter, startCounter } from './counter.ts'
import type { DriverTest } from './driver.ts'
import { type DriverHarness, readText, shell, shellSpec, specFor } from './harness.ts'
import { memoryTestOf } from './memory-test.ts'
import { SHELL } from './shell-texts.ts'

const CLONES = 10

export function memoryTests(harness: DriverHarness, driverTest: DriverTest): void {
  const memoryTest = memoryTestOf(harness, driverTest)
  const checkpointable = (over: Parameters<typeof specFor>[1] = {}) =>
    specFor(harness, { checkpointable: true, ...over })

  memoryTest('what ran goes on in a copy, and in the original', async (driver, path) => {
    const sandbox = await driver.create(checkpointable())
    await startCounter(sandbox)
    const before = await askCounter(sandbox)
    await driver.checkpoint(sandbox, path('c'), { leaveRunning: true })
    const copy = await driver.restore(checkpointable(), path('c'))
    for (const each of [sandbox, copy]) {
      const first = await askCounter(each)
      expect(first).toBeGreaterThanOrEqual(before)
      await expect.poll(() => askCounter(each)).toBeGreaterThan(first)
    }
    // Each writes on to its own file.
    await shell(copy, 'echo mine > /written')
    await expect(readText(sandbox, 'main', '/written')).rejects.toMatchObject({ code: 'not_found' })
  })

  memoryTest('a shell keeps its state, and its input', async (driver, path) => {
    const sandbox = await driver.create(checkpointable())
    const started = sandbox.guest.exec.start({
      ...shellSpec('x=1; while read line; do x=$((x+1)); echo $line $x; done'),
      exec: 'session',
      mode: 'stream',
      stdin: true,
    })
    const output = started.output[Symbol.asyncIterator]()
    await started.stdin.write(Buffer.from('one\n'))
    expect(Buffer.from((await output.next()).value?.bytes).toString()).toBe('one 2\n')
    await driver.checkpoint(sandbox, path('c'), { leaveRunning: true })
    const copy = await driver.restore(checkpointable(), path('c'))
    const attached = copy.guest.exec.attach('session', { stdoutFrom: 0, stderrFrom: 0 })
    await attached.stdin.write(Buffer.from('two\n'))
    attached.stdin.end()
    const chunks = await Array.fromAsync(attached.output)
    expect(Buffer.concat(chunks.map(({ bytes }) => bytes)).toString()).toBe('one 2\ntwo 3\n')
    expect(await attached.result).toMatchObject({ exitCode: 0 })
    // Its client in the original goes on as if nothing had been.
    await started.stdin.write(Buffer.from('three\n'))
    expect(Buffer.from((await output.next()).value?.bytes).toString()).toBe('three 3\n')
  })

  memoryTest('copies differ where they must, and nowhere else', async (driver, path) => {
    const sandbox = await driver.create(checkpointable({ hostname: 'original' }))
    await shell(sandbox, 'head -c 2000000 /dev/urandom > /data; sleep 0 & wait')
    const sum = 'sha256sum < /data'
    const original = await shell(sandbox, sum)
    await driver.checkpoint(sandbox, path('c'), { leaveRunning: true })
    const copies: Sandbox[] = []
    for (let n = 0; n < CLONES; n++) {
      copies.push(await driver.restore(checkpointable({ hostname: `copy-${n}` }), path('c')))
    }
    const seen = new Set<string>()
    for (const [n, copy] of copies.entries()) {
      expect(await shell(copy, sum)).toMatchObject({ stdout: original.stdout })
      const marks = await shell(copy, 'hostname; cat /etc/machine-id /dev/sandlot-seed')
      const [hostname, ...lines] = marks.stdout.trim().split('\n')
      expect(hostname).toBe(`copy-${n}`)
      for (const line of lines) seen.add(line)
      const askedAtS = Date.now() / 1_000
      const clock = Number((await shell(copy, 'date +%s')).stdout)
      expect(clock).toBeGreaterThan(askedAtS - 5)
      expect(clock).toBeLessThan(Date.now() / 1_000 + 5)
    }
    expect(seen.size).toBe(2 * CLONES)
  })

  memoryTest('limits hold in a copy, and its worlds end', async (driver, path) => {
    const sandbox = await driver.create(checkpointable({ limits: { pidsMax: 32 } }))
    await shell(sandbox, SHELL.leaveDaemon)
    await driver.checkpoint(sandbox, path('c'), { leaveRunning: false })
    expect(await sandbox.gone).toMatchObject({ kind: 'stopped' })
    const restore = () => driver.restore(checkpointable({ limits: { pidsMax: 32 } }), path('c'))
    const graded = await restore()
    expect(await shell(graded, SHELL.forkBomb)).toMatchObject({ exitCode: 3 })
    await driver.openGradeWorld(graded, { world: 'grade', shows: 'main' })
    expect((await shell(graded, SHELL.countProcesses, { world: 'grade' })).stdout).toContain(
      'answer',
    )
    const hungry = await restore()
    shell(hungry, SHELL.eatMemory).catch(() => {})
    expect(await hungry.gone).toMatchObject({ kind: 'oom_limit' })
  })

  memoryTest('clocks begin anew, and none of ours strikes late', async (driver, path) => {
    const sandbox = await driver.create(checkpointable({ lifetimeMs: 60_000 }))
    const spec = { ...shellSpec('sleep 1000'), mode: 'buffered', stdin: false } as const
    const limited = sandbox.guest.exec.start({ ...spec, exec: 'limited', timeoutMs: 8_000 })
    await limited.started
    await driver.checkpoint(sandbox, path('c'), { leaveRunning: true })
    // The deadline of the original's command passes; that of the copy's stands still meanwhile.
    expect(await limited.result).toMatchObject({ timedOut: true })
    const copy = await driver.restore(checkpointable({ lifetimeMs: 60_000 }), path('c'))
    const [listed] = await copy.guest.exec.list()
    expect(listed).toMatchObject({ exec: 'limited', running: true })
    const attached = copy.guest.exec.attach('limited', { stdoutFrom: 0, stderrFrom: 0 })
    expect(await attached.result).toMatchObject({ timedOut: true })
    const brief = await driver.restore(checkpointable({ lifetimeMs: 5_000 }), path('c'))
    expect(await brief.gone).toMatchObject({ kind: 'expired' })
  })

  memoryTest('files on the disk are saved with the memory', async (driver, path) => {
    const onDisk = () => checkpointable({ limits: { diskBytes: 256 * 2 ** 20 } })
    const sandbox = await driver.create(onDisk())
    await shell(sandbox, 'head -c 40000000 /dev/urandom > /data')
    const sum = 'sha256sum < /data'
    const original = await shell(sandbox, sum)
    await driver.checkpoint(sandbox, path('c'), { leaveRunning: false })
    expect((await driver.diskSpace()).heldBytes).toBe(0)
    const copies = [await driver.restore(onDisk(), path('c'))]
    copies.push(await driver.restore(onDisk(), path('c')))
    for (const copy of copies) {
      expect(await shell(copy, sum)).toMatchObject({ stdout: original.stdout })
      expect((await driver.usage(copy)).diskBytes).toBeGreaterThan(40_000_000)
      await shell(copy, 'rm /data')
    }
  })

  memoryTest('what does not fit is refused by name', async (driver, path) => {
    const plain = await driver.create(specFor(harness))
    const options = { leaveRunning: true }
    await expect(driver.checkpoint(plain, path('p'), options)).rejects.toMatchObject({
      code: 'unsupported',
      hint: expect.stringContaining('checkpointable'),
    })
    const sandbox = await driver.create(checkpointable())
    await driver.checkpoint(sandbox, path('c'), options)
    const other = checkpointable({ limits: { pidsMax: 63 } })
    await expect(driver.restore(other, path('c'))).rejects.toMatchObject({
      code: 'snapshot_incompatible',
      message: expect.stringContaining('limits'),
    })
    await expect(driver.restore(checkpointable(), path('none'))).rejects.toMatchObject({
      code: 'snapshot_incompatible',
    })
    if (!driver.capabilities.hotMount) return
    const blank = await driver.createBlank()
    await expect(driver.checkout(blank, checkpointable())).rejects.toMatchObject({
      code: 'unsupported',
    })
  })

  memoryTest('an aborted checkpoint or restore leaves nothing behind', async (driver, path) => {
    const sandbox = await driver.create(checkpointable())
    for (const delayMs of [0, 20, 60, 100]) {
      const signal = AbortSignal.timeout(delayMs)
      const taken = driver.checkpoint(sandbox, path(`a${delayMs}`), { leaveRunning: true, signal })
      const whole = await taken.then(
        () => true,
        (error) => error !== signal.reason,
      )
      if (!whole) await expect(access(path(`a${delayMs}`))).rejects.toThrow()
      await expect(access(path(`a${delayMs}.part`))).rejects.toThrow()
      expect(await shell(sandbox, SHELL.echo)).toMatchObject({ exitCode: 0 })
    }
    await driver.checkpoint(sandbox, path('c'), { leaveRunning: true })
    for (const delayMs of [0, 40, 90, 150]) {
      const signal = AbortSignal.timeout(delayMs)
      const copy = await driver.restore(checkpointable(), path('c'), { signal }).catch((error) => {
        expect(error).toBe(signal.reason)
      })
      if (copy) await driver.stop(copy)
    }
  })
}
