/** What has lost everybody who wanted it. These tests wait for real deadlines, side by side. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { RealDaemon } from './harness/daemon.ts'
import { story } from './harness/story.ts'
import { until } from './harness/until.ts'
import { workOn } from './harness/work.ts'

const worker = fileURLToPath(new URL('./harness/worker.ts', import.meta.url))
/** Longer than a blank waits for a daemon, and a lease for its worker. */
const PATIENCE_MS = 150_000

await story('left alone', { pool: 0 }, (given) => {
  test.concurrent(
    'the episodes of a worker that was killed go to another',
    async () => {
      const work = { name: 'inherited', from: given.image, count: 6 }
      const child = spawn(process.execPath, [worker, work.name, work.from, String(work.count)], {
        stdio: ['ignore', 'pipe', 'inherit'],
        env: { ...process.env, ...given.daemon.environment },
      })
      const begun: string[] = []
      createInterface(child.stdout).on('line', (key) => begun.push(key))
      const exited = once(child, 'exit')
      try {
        await until('two have begun', () => begun.length >= 2)
      } finally {
        child.kill('SIGKILL')
        await exited
      }
      await using run = workOn(given.client, { ...work, who: 'heir' })
      const rows = await run.wait()
      expect(rows.map(({ key }) => key).sort()).toEqual(['0', '1', '2', '3', '4', '5'])
      for (const { outcome, reward, data } of rows) {
        expect([outcome, reward, data]).toEqual(['graded', 1, 'heir'])
      }
      const inherited = rows.filter(({ attempts }) => attempts.length > 1)
      expect(inherited.map(({ key }) => key).sort()).toEqual([...begun].sort())
      for (const { attempts } of inherited) expect(attempts[0]).toMatchObject({ outcome: null })
    },
    PATIENCE_MS,
  )

  test.concurrent('a sandbox that nobody uses ends after its time; one in use does not', async () => {
    const create = (options: object) =>
      given.client.sandboxes.create({ from: given.image, ...options })
    const inUse = async () => {
      const used = await create({ keepWarm: '10s' })
      // Whatever holds up the others.
      return { used, using: used.exec('sleep 15; echo used') }
    }
    const [unused, { used, using }, mortal, young] = await Promise.all([
      create({ keepWarm: '2s' }),
      inUse(),
      create({ lifetime: '3s' }),
      create({}),
    ])
    const dying = mortal.exec('sleep 1000').catch((error) => error)
    await until('it is over', async () => (await unused.view()).state === 'stopped')
    expect((await unused.view()).ending).toMatchObject({ kind: 'expired' })
    expect(await dying).toMatchObject({ code: 'sandbox_gone' })
    expect((await mortal.view()).ending).toMatchObject({ kind: 'expired' })
    expect(await using).toMatchObject({ exitCode: 0, stdout: 'used\n' })
    await until('it is over, too', async () => (await used.view()).state === 'stopped')
    expect((await young.view()).state).toBe('running')
    await young.stop()
  })

  test.concurrent(
    'sandboxes without a daemon end themselves, blanks as well',
    async () => {
      const daemon = await RealDaemon.start({ pool: 2 })
      try {
        const client = daemon.client()
        const sandbox = await client.sandboxes.create({ from: given.image, keepWarm: '10s' })
        const busy = sandbox.exec('while :; do :; done').catch((error) => error)
        await until('the pool is full', async () => (await daemon.hostIds()).length >= 3)
        await daemon.kill()
        await until('the sandbox has ended', async () => !(await daemon.livesOn(sandbox.id)))
        await until('all have', async () => (await daemon.livingOn()).length === 0, {
          patienceMs: PATIENCE_MS,
        })
        await daemon.start()
        expect((await sandbox.view()).ending).toMatchObject({ kind: 'expired' })
        expect(await busy).toMatchObject({ name: 'SandlotError' })
      } finally {
        await daemon.close()
      }
    },
    PATIENCE_MS,
  )
})
