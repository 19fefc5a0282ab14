import { expect, test } from 'vitest'
import { story } from './harness/story.ts'
import { until } from './harness/until.ts'

const EPISODES = 72
/** The daemon is killed when so many results were read. */
const KILLS_AT = [Math.floor(EPISODES / 4), Math.floor((2 * EPISODES) / 3)]

await story('a daemon that is killed', { pool: 2 }, (given) => {
  test('in the middle of a batch, twice, loses and doubles nothing', async () => {
    const truth = (id: number) => (id % 3 === 0 ? 0 : 1)
    const tasks = Array.from({ length: EPISODES }, (_, id) => ({ id: `task-${id}`, number: id }))
    const run = given.client.rollouts.map(
      tasks,
      async ({ sandbox, task }) => {
        await sandbox.files.write('/work/answer', truth(task.number) === 1 ? '42' : '41')
        const { exitCode } = await sandbox.exec('sleep 0.3; grep -q 4 /work/answer')
        return { data: { number: task.number, exitCode } }
      },
      {
        ...{ from: given.image, concurrency: 6, name: 'crashes' },
        resources: { memory: '256MiB', disk: '64MiB' },
        grade: {
          run: ['sh', '-c', '[ "$(cat /work/answer)" = "$(cat /tests/wanted)" ]'],
          files: { '/tests/wanted': '42' },
        },
      },
    )
    const seen: string[] = []
    for await (const { key } of run) {
      seen.push(key)
      if (!KILLS_AT.includes(seen.length)) continue
      await given.daemon.kill()
      await given.daemon.start()
    }
    const rows = await (await given.client.rollouts.get('crashes')).wait()
    const keys = tasks.map(({ id }) => id)
    expect(rows.map(({ key }) => key).sort()).toEqual([...keys].sort())
    expect(seen).toEqual(rows.map(({ key }) => key))
    const told = rows.map(({ key, outcome, reward, data, cause }) => ({
      key,
      outcome,
      reward,
      data,
      cause,
    }))
    expect(told).toEqual(
      rows.map(({ key, index }) => ({
        ...{ key, outcome: 'graded', reward: truth(index), cause: [] },
        data: { number: index, exitCode: 0 },
      })),
    )
    expect(await run.view()).toMatchObject({ state: 'finished', counts: { done: EPISODES } })
    expect(await Array.fromAsync(given.client.sandboxes.list())).toEqual([])
  })

  test('finds the sandboxes of its clients again, with what runs in them', async () => {
    const sandbox = await given.client.sandboxes.create({
      from: given.image,
      tags: { kept: 'yes' },
      env: { WHO: 'me' },
    })
    await sandbox.files.write('/work/kept', 'by me')
    const buffered = sandbox.exec('echo $WHO; sleep 3; echo still $WHO; exit 7')
    const streamed = sandbox.exec('for i in $(seq 40); do echo line $i; sleep 0.1; done', {
      stream: true,
    })
    const lines: string[] = []
    for await (const { text } of streamed) {
      lines.push(text)
      if (lines.length !== 3) continue
      await given.daemon.kill()
      await given.daemon.start()
    }
    expect(lines.join('')).toBe(Array.from({ length: 40 }, (_, n) => `line ${n + 1}\n`).join(''))
    expect(await streamed.result).toMatchObject({ exitCode: 0 })
    expect(await buffered).toMatchObject({ exitCode: 7, stdout: 'me\nstill me\n' })
    const [found] = await Array.fromAsync(given.client.sandboxes.list({ tags: { kept: 'yes' } }))
    expect(found).toMatchObject({ id: sandbox.id, state: 'running', owner: 'client' })
    expect(await sandbox.files.readText('/work/kept')).toBe('by me')
    expect(await sandbox.exec('echo $WHO; pwd')).toMatchObject({ stdout: 'me\n/\n' })
    await sandbox.stop()
    await expect(sandbox.exec('true')).rejects.toMatchObject({ code: 'sandbox_gone' })
  })

  test('does not find what ended meanwhile, and says how it ended', async () => {
    const [killed, expired] = await Promise.all([
      given.client.sandboxes.create({ from: given.image }),
      given.client.sandboxes.create({ from: given.image, lifetime: '1s', keepWarm: '1h' }),
    ])
    await given.daemon.kill()
    await given.daemon.killSandbox(killed.id)
    for (const { id } of [killed, expired]) {
      await until(`${id} is dead`, async () => !(await given.daemon.livesOn(id)))
    }
    await given.daemon.start()
    expect((await killed.view()).ending).toMatchObject({ kind: 'lost' })
    expect((await expired.view()).ending).toMatchObject({ kind: 'expired' })
    await expect(killed.exec('true')).rejects.toMatchObject({ code: 'sandbox_lost' })
  })

  test('at any moment of a sandbox’s life, leaves nothing that is nobody’s', async () => {
    const tags = { storm: 'yes' }
    const life = async () => {
      const sandbox = await given.client.sandboxes.create({ from: given.image, tags })
      await sandbox.exec('true')
      await sandbox.stop()
    }
    await life()
    const lives = Promise.allSettled(Array.from({ length: 6 }, life))
    for (let kills = 0; kills < 3; kills++) {
      await new Promise((resolve) => setTimeout(resolve, 150 + 100 * kills))
      await given.daemon.kill()
      await given.daemon.start()
    }
    const ended = await lives
    expect(ended.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []))).toEqual([])
    await given.client.sandboxes.stopAll({ tags })
    expect(await Array.fromAsync(given.client.sandboxes.list())).toEqual([])
  })
})
