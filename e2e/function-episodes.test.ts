import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { temporaryDirectory } from '@sandlot/testkit'
import type { EpisodeContext, FunctionRunOptions, ResultRow, Run } from 'sandlot'
import { expect, test } from 'vitest'
import { runCommand, startCommand } from './harness/command.ts'
import type * as episodes from './harness/episodes.ts'
import { type EpisodeTask, episode } from './harness/episodes.ts'
import { story } from './harness/story.ts'
import { until } from './harness/until.ts'

type Episodes = typeof episodes

await story('episodes that are functions', { pool: 2 }, (given) => {
  const url = new URL('./harness/episodes.ts', import.meta.url)
  const fn = () => given.client.fn<Episodes, 'episode'>(url, { export: 'episode', concurrency: 2 })
  const grader = () => given.client.fn<Episodes, 'grade'>(url, { export: 'grade' })

  const options = (name: string): FunctionRunOptions<EpisodeTask> => ({
    ...{ name, from: given.image, concurrency: 4, grade: { run: grader() } },
    retry: { model: 0, infra: 0 },
    timeout: { agent: '2m' },
  })
  const tasks = (...ids: string[]): EpisodeTask[] => ids.map((id) => ({ id }))
  const rowsOf = async (run: Run) =>
    new Map((await run.wait()).map((row): [string, ResultRow] => [row.key, row]))

  const containers = async (run: string) => {
    const all = await Array.fromAsync(given.client.sandboxes.list())
    return all.filter((each) => each.tags.run === run && each.state === 'running')
  }

  test('a container calls it, with a sandbox that it reaches, and nothing beside', async () => {
    await using other = await given.client.sandboxes.create({ from: given.image })
    const all = [
      ...tasks('right-1', 'right-2', 'wrong', 'throw', 'model'),
      { id: 'reach', other: other.id },
    ]
    const run = given.client.rollouts.map(all, fn(), options('kinds'))
    const rows = await rowsOf(run)
    const seen = [...rows].map(([key, { outcome, reward }]) => [key, outcome, reward])
    expect(seen.sort()).toEqual([
      ['model', 'model_error', null],
      ['reach', 'graded', 0],
      ['right-1', 'graded', 1],
      ['right-2', 'graded', 1],
      ['throw', 'episode_error', null],
      ['wrong', 'graded', 0],
    ])
    expect(rows.get('reach')?.data).toEqual({
      ...{ '/v1/runs': 401, '/healthz': 401, '/v1/keys': 401 },
      ...{ view: 'forbidden', exec: 'sandbox_unknown', own: 0 },
    })
    expect(rows.get('throw')?.error).toContain('no good')
    const right = rows.get('right-1') as ResultRow
    const text = async (name: string) => new TextDecoder().decode(await run.artifact(right, name))
    expect(await text('answer')).toBe('right-1\n')
    expect(await text('log')).toContain('attempt 1')
    expect(await text('agent.stdout')).toBe('prints right-1\n')
  })

  test('the same source is the callback of a process', async () => {
    const graded = { grade: { run: 'grep -qx right /answer' } }
    const run = given.client.rollouts.map(
      tasks('right'),
      async (context: EpisodeContext<EpisodeTask>) => await episode(context),
      { ...options('callback'), ...graded },
    )
    expect(await run.wait()).toMatchObject([{ outcome: 'graded', reward: 1 }])
  })

  test('the example is played by containers', async () => {
    const example = new URL('../examples/episode.ts', import.meta.url)
    const played = given.client.fn<typeof import('../examples/episode.ts')>(example, {
      export: 'episode',
    })
    const run = given.client.rollouts.map([{ id: '1', question: '6 * 7' }], played, {
      ...{ from: given.image, grade: { run: 'grep -qx 42 /answer' } },
    })
    expect(await run.wait()).toMatchObject([
      { outcome: 'graded', reward: 1, data: { answer: '42', question: '6 * 7' } },
    ])
  })

  test('it goes on without the process that began it, when a container dies and when the daemon does', async () => {
    const client = given.daemon.client()
    const slow = Array.from({ length: 10 }, (_, n) => `slow-${n}`)
    const f = client.fn<Episodes, 'episode'>(url, { export: 'episode', concurrency: 2 })
    const grade = { run: client.fn<Episodes, 'grade'>(url, { export: 'grade' }) }
    await client.rollouts.map(tasks(...slow), f, { ...options('alone'), grade }).submitted
    await client.close()
    const run = await given.client.rollouts.get('alone')
    const [first] = await until('a container at work', async () => {
      const view = await run.view()
      const all = await containers('alone')
      return view.counts.running > 1 && all.length > 1 ? all : undefined
    })
    await given.daemon.killSandbox(first?.id ?? '')
    await until('some results', async () => (await run.view()).counts.done > 2)
    await given.daemon.kill()
    await given.daemon.start()
    const rows = await run.wait()
    expect(rows.map(({ key }) => key).sort()).toEqual(slow)
    expect(rows.map(({ outcome, reward }) => [outcome, reward])).toEqual(
      slow.map(() => ['graded', 1]),
    )
    const lost = rows.flatMap(({ attempts }) => attempts).filter(({ outcome }) => outcome === null)
    expect(lost.length).toBeGreaterThan(1)
  })

  test('the command line starts it, and may be killed: nothing is lost, and its episodes go on', async () => {
    await using directory = await temporaryDirectory()
    const file = join(directory.path, 'tasks.jsonl')
    const long = Array.from({ length: 6 }, (_, n) => `long-${n}`)
    const lines = [...long.map((id) => ({ id })), { id: 'never', sandlot: { quarantine: 'no' } }]
    await writeFile(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
    const module = fileURLToPath(url)
    const argv = ['runs', 'start', file, '--from', given.image, '--name', 'killed', '--watch']
    const functions = ['--function', `${module}#episode`, '--grade-function', `${module}#grade`]
    const child = startCommand([...argv, ...functions], given.daemon.environment)
    // Its name is said when all tasks are there.
    const [name] = await once(child.stdout, 'data')
    expect(String(name).trim()).toBe('killed')
    const gone = once(child, 'close')
    // The shell has made room for Node.js: it is the process itself.
    child.kill('SIGKILL')
    await gone
    const run = await given.client.rollouts.get('killed')
    expect((await run.view()).counts.done).toBeLessThan(lines.length)
    const rows = await rowsOf(run)
    const seen = [...rows].map(([key, { outcome, reward }]) => [key, outcome, reward])
    expect(seen.sort()).toEqual([
      ...long.map((id) => [id, 'graded', 1]),
      ['never', 'task_invalid', null],
    ])
  })

  test('the command line says what has no place beside a function', async () => {
    await using directory = await temporaryDirectory()
    const file = join(directory.path, 'tasks.jsonl')
    await writeFile(file, '{"id": "right-1"}\n')
    const start = async (...more: string[]) =>
      await runCommand(['runs', 'start', file, '--from', given.image, ...more], {
        environment: given.daemon.environment,
      })
    const module = fileURLToPath(url)
    const refused: [string[], string][] = [
      [['--function', './none.ts#x'], 'names no file'],
      [['--function', module, '--command', 'true'], 'both --function and --command'],
      [['--function', module, '--model', 'http://10.0.0.1'], '--model has no place'],
      [['--command', 'true', '--grade-function', module], 'has no place without --function'],
      [['--function', `${module}#nothing`], 'nothing'],
    ]
    for (const [more, why] of refused) {
      const end = await start(...more)
      expect(end.code).toBeGreaterThan(0)
      expect(end.stderr).toContain(why)
    }
  })

  test('the container of a handler that ignores its end is replaced', async () => {
    const run = given.client.rollouts.map(tasks('stubborn', 'right'), fn(), {
      ...options('stubborn'),
      concurrency: 1,
      each: ({ id }) => (id === 'stubborn' ? { timeout: { agent: '2s' } } : {}),
    })
    const [before] = await until('a container', async () => {
      const all = await containers('stubborn')
      return all.length > 0 ? all : undefined
    })
    const rows = await rowsOf(run)
    expect(rows.get('stubborn')).toMatchObject({ outcome: 'agent_timeout', reward: 0 })
    expect(rows.get('right')).toMatchObject({ outcome: 'graded', reward: 1 })
    expect(before).toBeDefined()
    await until('its end', async () => (await containers('stubborn')).length === 0)
  })
})
