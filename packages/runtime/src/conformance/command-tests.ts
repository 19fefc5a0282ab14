import { expect } from 'vitest'
import type { DriverTest } from './driver.ts'
import { type DriverHarness, shell, shellSpec, specFor } from './harness.ts'
import { SHELL } from './shell-texts.ts'

export function commandTests(harness: DriverHarness, driverTest: DriverTest): void {
  driverTest('ends, output, input and surroundings of a command', async ({ driver }) => {
    const sandbox = await driver.create(specFor(harness))
    expect(await shell(sandbox, SHELL.echo)).toMatchObject({ stdout: 'out\n', stderr: 'err\n' })
    expect(await shell(sandbox, SHELL.exit7)).toMatchObject({ exitCode: 7 })
    expect(await shell(sandbox, SHELL.killItself)).toMatchObject({ signal: 9, killed: false })
    const stdin = Buffer.from('a\nb')
    expect(await shell(sandbox, SHELL.stdin, { stdin })).toMatchObject({ stdout: 'a\nb' })
    const around = await shell(sandbox, SHELL.surroundings, {
      env: [...shellSpec('').env, ['GREETING', 'grüß']],
      cwd: '/tmp',
      user: '0',
    })
    expect(around.stdout).toBe('grüß\n/tmp\n0\n')
  })

  driverTest('a command is forgotten with its result, unless it is kept', async ({ driver }) => {
    const sandbox = await driver.create(specFor(harness))
    const { exec } = sandbox.guest
    const known = async () => (await exec.list()).map((listing) => listing.exec)
    await shell(sandbox, SHELL.echo, { exec: 'gone' })
    await shell(sandbox, SHELL.echo, { exec: 'kept', keep: true })
    expect(await known()).toEqual(['kept'])
    await exec.forget('kept')
    const spec = { ...shellSpec(SHELL.echo), stdin: false, mode: 'buffered', forget: true } as const
    await exec.start(spec).result
    expect(await known()).toEqual([])
    await expect(exec.attach(spec.exec, { stdoutFrom: 0, stderrFrom: 0 }).result).rejects.toThrow()
  })

  driverTest('a deadline ends a command and keeps its output', async ({ driver }) => {
    const sandbox = await driver.create(specFor(harness))
    // Time enough to begin, on a machine that stands still for a while.
    const ended = [SHELL.sleep, SHELL.stubborn].map((text) =>
      shell(sandbox, text, { timeoutMs: 5_000 }),
    )
    expect(await Promise.all(ended)).toMatchObject([
      { timedOut: true, stdout: 'before\n' },
      { timedOut: true, stdout: 'deaf\n' },
    ])
    expect(await shell(sandbox, SHELL.exit7)).toMatchObject({ exitCode: 7 })
  })

  driverTest('a kill ends all that a command started', async ({ driver }) => {
    const { guest } = await driver.create(specFor(harness))
    const spec = shellSpec(SHELL.tree)
    const handle = guest.exec.start({ ...spec, stdin: false, mode: 'stream' })
    await handle.started
    const mine = async () =>
      (await guest.processes('main')).filter(({ exec }) => exec === spec.exec).length
    await expect.poll(mine).toBeGreaterThan(0)
    await guest.exec.kill(spec.exec, 9)
    expect(await handle.result).toMatchObject({ signal: 9, killed: true })
    await expect.poll(mine).toBe(0)
  })

  driverTest('files go in and out', async ({ driver }) => {
    const { guest } = await driver.create(specFor(harness))
    const content = Buffer.alloc(300_000, 'x')
    const options = { parents: true }
    await guest.files.write('main', '/deep/in/file', content, options)
    const { content: back } = await guest.files.read('main', '/deep/in/file')
    expect(Buffer.concat(await Array.fromAsync(back)).equals(content)).toBe(true)
    await expect(guest.files.stat('main', '/nothing')).rejects.toMatchObject({ code: 'not_found' })
  })
}
