import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCommand } from './harness/command.ts'
import { RealDaemon } from './harness/daemon.ts'
import { story } from './harness/story.ts'
import { until } from './harness/until.ts'

await story('whoever operates a daemon', { pool: 1 }, (given) => {
  const sandlot = (...argv: string[]) => runCommand(argv, { environment: given.daemon.environment })
  const leaks = async (...options: string[]) => {
    const scope = ['--run-directory', given.daemon.runDirectory]
    const data = ['--data-directory', given.daemon.dataDirectory]
    const end = await sandlot('doctor', 'leaks', '--json', ...scope, ...data, ...options)
    const { found } = JSON.parse(end.stdout) as { found: { state: string; kind: string }[] }
    const states = (state: string) => found.filter((each) => each.state === state)
    return { code: end.code, states }
  }

  test('is told what a killed daemon left, and takes away what nobody will ask for', async () => {
    const sandbox = await given.client.sandboxes.create({ from: given.image })
    const waits = async () => {
      const metrics = await (await fetch(`${given.daemon.url}/metrics`)).text()
      return /^sandlot_pool_blanks\{state="ready"\} 1$/m.test(metrics)
    }
    await until('a blank waits beside it', waits)
    expect(await given.daemon.hostIds()).toHaveLength(2)
    const running = await leaks()
    expect(running).toMatchObject({ code: 0 })
    expect(running.states('owned')).toHaveLength(1)
    expect(running.states('left')).toEqual([])

    await given.daemon.kill()
    const killed = await leaks()
    expect(killed.code).toBe(1)
    expect(killed.states('waiting')).toHaveLength(1)
    expect(new Set(killed.states('left').map(({ kind }) => kind))).toEqual(
      new Set(['process', 'cgroup', 'directory']),
    )
    const removed = await leaks('--remove')
    expect(removed.code).toBe(0)
    expect(removed.states('removed').length).toBe(killed.states('left').length)
    expect(await given.daemon.hostIds()).toHaveLength(1)

    await given.daemon.start()
    expect((await sandbox.exec('echo still here')).stdout).toBe('still here\n')
    await sandbox.stop()
  })

  test('has the result of a command that ended while no daemon was up', async () => {
    const sandbox = await given.client.sandboxes.create({ from: given.image })
    const text = 'for i in $(seq 3); do echo line $i; done; touch /tmp/over; exit 9'
    const exec = sandbox.exec(`until [ -e /tmp/go ]; do sleep 0.05; done; ${text}`)
    await sandbox.exec('(sleep 1; touch /tmp/go) >/dev/null 2>&1 &')
    await given.daemon.kill()
    // It ends now, with nobody there to see it: nothing on the machine shows that it has.
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    await given.daemon.start()
    expect(await exec).toMatchObject({ exitCode: 9, stdout: 'line 1\nline 2\nline 3\n' })
    await sandbox.stop()
  })

  test('restores a backup taken while it serves: all is there, and no sandbox is believed alive', async () => {
    const place = await mkdtemp('/var/tmp/sandlot-e2e-backup-')
    try {
      const run = given.client.rollouts.map([{ id: 'a' }], async () => ({ reward: 1 }), {
        ...{ from: given.image, name: 'kept' },
      })
      const rows = await run.wait()
      const living = await given.client.sandboxes.create({ from: given.image })
      const file = join(place, 'backup.tar')
      expect(await sandlot('backup', file)).toMatchObject({ code: 0, stdout: '' })
      expect((await sandlot('backup', file)).stderr).toMatch(/is there already/)
      const data = join(place, 'data')
      const restore = (to: string) => sandlot('restore-backup', file, '--data-directory', to)
      expect(await restore(given.daemon.dataDirectory)).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/is not empty.*hint/s),
      })
      expect(await restore(data)).toMatchObject({ code: 0, stdout: `${data}\n` })
      await living.stop()

      await using restored = await RealDaemon.over(data)
      const client = restored.client()
      expect(await (await client.rollouts.get('kept')).wait()).toEqual(rows)
      expect(await Array.fromAsync(client.sandboxes.list({ state: 'running' }))).toEqual([])
      expect((await (await client.sandboxes.get(living.id)).view()).ending).toMatchObject({
        kind: 'lost',
      })
    } finally {
      await rm(place, { recursive: true, force: true })
    }
  })
})
