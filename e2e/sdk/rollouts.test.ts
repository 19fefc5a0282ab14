import { type EpisodeContext, ModelError, type ResultRow, Sandlot } from 'sandlot'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type FakeDaemon, startFakeDaemon, until } from './fake-daemon.ts'

let daemon: FakeDaemon
beforeAll(async () => {
  daemon = await startFakeDaemon()
})
afterAll(async () => daemon[Symbol.asyncDispose]())

const MIB = 2 ** 20

interface Task {
  readonly id: string
  readonly kind: string
  readonly text?: string
}

/** Each way an episode can end; what it must come to stands in `EXPECTED`. */
const KINDS: Record<string, (context: EpisodeContext<Task>) => Promise<unknown>> = {
  reward: async ({ index }) => ({ reward: index % 2 }),
  rewards: async () => ({ rewards: { style: 0.5, tests: 1 } }),
  data: async () => ({ reward: 1, data: 'd'.repeat(MIB) }),
  task: async ({ task }) => ({ reward: task.text?.length === MIB ? 1 : 0 }),
  exec: async ({ sandbox }) => ({ reward: (await sandbox.exec(['false'])).exitCode ?? -1 }),
  limit: async () => ({ limit: 'turns' }),
  throw: async () => {
    throw new Error('the policy broke', { cause: new Error('deeper') })
  },
  nothing: async () => undefined,
  nan: async () => ({ reward: Number.NaN }),
  infinite: async () => ({ reward: Number.POSITIVE_INFINITY }),
  text: async () => ({ reward: '1' }),
  string: async () => 'done',
  cyclic: async () => {
    const data: Record<string, unknown> = {}
    data.self = data
    return { reward: 1, data }
  },
  huge: async () => ({
    rewards: Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`reward-${i}`, i])),
  }),
  never: () => new Promise(() => {}),
  deaf: async ({ sandbox }) => {
    await sandbox.exec(['sleep', '3600']).catch(() => undefined)
    return { reward: 0 }
  },
  model: async ({ model }) => {
    await model(async () => {
      throw new Error('503 from the endpoint')
    })
  },
  caught: async ({ model }) => {
    await model(() => Promise.reject(new Error('503'))).catch(() => undefined)
    return { reward: 0 }
  },
  modelError: async () => {
    throw new ModelError('no tokens left')
  },
  recovered: async ({ model }) => {
    await model(() => Promise.reject(new Error('503'))).catch(() => undefined)
    return { reward: await model(async () => 1) }
  },
}

const EXPECTED: Record<string, Partial<ResultRow>> = {
  reward: { outcome: 'graded', valid: true },
  rewards: { outcome: 'graded', valid: true, rewards: { style: 0.5, tests: 1 } },
  data: { outcome: 'graded', reward: 1, data: null },
  task: { outcome: 'graded', reward: 1 },
  exec: { outcome: 'graded', reward: 1 },
  limit: { outcome: 'limit', valid: true, reward: 0 },
  throw: { outcome: 'episode_error', valid: false, reward: null },
  nothing: { outcome: 'episode_error', valid: false, reward: null },
  nan: { outcome: 'episode_error', valid: false, reward: null },
  infinite: { outcome: 'episode_error', valid: false, reward: null },
  text: { outcome: 'episode_error', valid: false, reward: null },
  string: { outcome: 'episode_error', valid: false, reward: null },
  cyclic: { outcome: 'episode_error', valid: false, reward: null },
  huge: { outcome: 'episode_error', valid: false, reward: null },
  never: { outcome: 'agent_timeout', valid: true, reward: 0 },
  deaf: { outcome: 'agent_timeout', valid: true, reward: 0 },
  model: { outcome: 'model_error', valid: false, reward: null },
  caught: { outcome: 'model_error', valid: false, reward: null },
  modelError: { outcome: 'model_error', valid: false, reward: null },
  recovered: { outcome: 'graded', reward: 1 },
}

function tasksOf(count: number): Task[] {
  // A run of which half ends in errors is paused.
  const kinds = Object.keys(KINDS).flatMap((kind) => [kind, 'reward'])
  return Array.from({ length: count }, (_, i) => {
    const kind = kinds[i % kinds.length] as string
    const text = kind === 'task' ? { text: 't'.repeat(MIB) } : {}
    return { id: `${kind}-${i}`, kind, ...text }
  })
}

function kindOf(row: ResultRow): string {
  return row.key.replace(/-\d+$/, '')
}

test('200 episodes end in every way there is, each exactly once, with the outcome it deserves', async () => {
  const client = daemon.client()
  const tasks = tasksOf(200)
  const run = client.rollouts.map(
    tasks,
    (context) => (KINDS[context.task.kind] as (typeof KINDS)[string])(context) as never,
    {
      from: await daemon.image(),
      concurrency: 64,
      timeout: { agent: '1m', model: '1m' },
      // Of those that end by their time alone: all others have enough of it on any machine.
      each: ({ kind }) => (kind === 'never' || kind === 'deaf' ? { timeout: { agent: '1s' } } : {}),
      retry: { model: 0 },
      policy: { episode_error: 'keep' },
    },
  )
  const rows: ResultRow[] = []
  for await (const row of run) rows.push(row)
  expect(rows.map(({ key }) => key).sort()).toEqual(tasks.map(({ id }) => id).sort())
  for (const row of rows) {
    expect({ kind: kindOf(row), ...row }).toMatchObject(EXPECTED[kindOf(row)] as object)
  }
  const thrown = rows.find((row) => kindOf(row) === 'throw')
  expect(thrown?.cause.join(' ')).toContain('deeper')
  const large = rows.find((row) => kindOf(row) === 'data')
  expect(large?.dataBlob).toMatch(/^sha256:/)
  expect(await run.data(large as ResultRow)).toBe('d'.repeat(MIB))

  expect((await run.view()).state).toBe('finished')
  expect(new Set(rows.map(({ cursor }) => cursor)).size).toBe(200)
  const rest = await run.wait({ from: rows[149]?.cursor ?? '' })
  expect(rest.map(({ key }) => key)).toEqual(rows.slice(150).map(({ key }) => key))
  await until(async () => (await Array.fromAsync(client.sandboxes.list())).length === 0)
})

describe('a grader', () => {
  test('in this process gets the data and the files, and gives the verdict', async () => {
    const run = daemon.client().rollouts.map(
      [{ id: 'a', word: 'yes' }],
      async ({ sandbox, task }) => {
        await sandbox.files.write('/out', task.word)
        return { data: { said: task.word, filler: 'f'.repeat(100_000) } }
      },
      {
        from: await daemon.image(),
        grade: {
          run: async ({ sandbox, episode, data, task }) => {
            const left = await episode.files.readText('/out')
            const there = await sandbox.files.readText('/out')
            const { said } = data as { said: string }
            return left === task.word && there === task.word && said === task.word ? 1 : 0
          },
        },
      },
    )
    expect(await run.wait()).toMatchObject([{ outcome: 'graded', reward: 1 }])
  })

  test('makes a reward of the episode an error, and its own error no zero', async () => {
    const run = daemon.client().rollouts.map(
      ['own', 'broken'].map((id) => ({ id })),
      async ({ key }) => (key === 'own' ? { reward: 1 } : {}),
      {
        from: await daemon.image(),
        retry: { grade: 0 },
        grade: {
          run: async () => {
            throw new Error('the grader is broken')
          },
        },
      },
    )
    const rows = new Map((await run.wait()).map((row) => [row.key, row]))
    expect(rows.get('own')).toMatchObject({ outcome: 'episode_error', reward: null })
    expect(rows.get('broken')).toMatchObject({ outcome: 'grade_error', reward: null, valid: false })
  })

  test('as a command is judged by its exit code, with files of its own', async () => {
    const run = daemon.client().rollouts.map([{ id: 'a' }], async () => ({}), {
      from: await daemon.image(),
      grade: { run: ['cat', '/tests/expected'], files: { '/tests/expected': 'x' } },
    })
    expect(await run.wait()).toMatchObject([{ outcome: 'graded', reward: 1 }])
  })
})

describe('a list of tasks', () => {
  const episode = async () => ({ reward: 1 })

  test.each([
    ['no list', 'tasks', 'invalid_request'],
    ['nothing', undefined, 'invalid_request'],
    ['empty', [], 'invalid_request'],
    ['of what JSON lacks', [() => 1], 'invalid_request'],
    ['of what JSON can not hold', [{ id: 1n }], 'invalid_request'],
    ['with a key too long', [{ id: 'k'.repeat(513) }], 'invalid_request'],
    ['with one task twice', [{ id: 'a' }, { id: 'a' }], 'task_conflict'],
    [
      'with one key twice',
      [
        { id: 'a', n: 1 },
        { id: 'a', n: 2 },
      ],
      'task_conflict',
    ],
  ])('that is %s is refused with a hint', async (_, tasks, code) => {
    await using run = daemon.client().rollouts.map(tasks as never, episode, {
      from: await daemon.image(),
    })
    await expect(run.wait()).rejects.toMatchObject({ code, fault: 'caller', hint: /./ })
  })

  test('may be a generator, also a slow one, and one that fails', async () => {
    const client = daemon.client()
    const from = await daemon.image()
    let isFirstDone = false
    async function* slow() {
      yield { id: 'a' }
      await until(() => isFirstDone)
      yield { id: 'b' }
    }
    const rows: string[] = []
    for await (const row of client.rollouts.map(slow(), episode, { from })) {
      rows.push(row.key)
      isFirstDone = true
    }
    expect(rows).toEqual(['a', 'b'])

    async function* broken() {
      yield { id: 'a' }
      throw new Error('the dataset ends here')
    }
    await using run = client.rollouts.map(broken(), episode, { from })
    await expect(run.wait()).rejects.toThrow('the dataset ends here')
    await expect(run.view()).rejects.toThrow('the dataset ends here')
  })
})

describe('a run by its name', () => {
  const episode = async () => ({ reward: 1 })
  const tasks = ['a', 'b', 'c'].map((id) => ({ id }))

  test('that is finished is not run again by accident', async () => {
    const client = daemon.client()
    const options = { from: await daemon.image(), name: 'finished' }
    const first = await client.rollouts.map(tasks, episode, options).wait()
    const again = client.rollouts.map(tasks, episode, options)
    await expect(again.wait()).rejects.toMatchObject({ code: 'run_exists', hint: /ifExists/ })
    const other = client.rollouts.map(tasks, episode, { ...options, version: '2' })
    await expect(other.wait()).rejects.toMatchObject({ code: 'run_differs' })
    const attached = client.rollouts.map(tasks, episode, { ...options, ifExists: 'attach' })
    expect(await attached.wait()).toEqual(first)
    const replaced = client.rollouts.map(tasks, episode, { ...options, ifExists: 'replace' })
    const second = await replaced.wait()
    expect(second.map(({ episode: id }) => id)).not.toEqual(first.map(({ episode: id }) => id))
  })

  test('is read by a process that only reads, and goes on when its worker comes back', async () => {
    const options = { from: await daemon.image(), name: 'resumed', concurrency: 1 }
    const first = daemon.client()
    let gate: (() => void) | undefined
    const held = async ({ key }: { key: string }) => {
      if (key === 'b') await new Promise<void>((resolve) => (gate = resolve))
      return { reward: 1 }
    }
    const started = first.rollouts.map(tasks, held, options)
    const seen: ResultRow[] = []
    for await (const row of started) {
      seen.push(row)
      break
    }
    await until(() => gate !== undefined)
    await first.close()
    await expect(started.wait()).rejects.toMatchObject({ code: 'cancelled' })

    const reader = await daemon.client().rollouts.get('resumed')
    await until(async () => (await reader.view()).state === 'waiting')
    const reading = reader.wait({ from: seen[0]?.cursor ?? '' })
    const rows = await daemon.client().rollouts.map(tasks, episode, options).wait()
    expect(rows.map(({ key }) => key)).toEqual(['a', 'b', 'c'])
    expect((await reading).map(({ key }) => key)).toEqual(['b', 'c'])
    await expect(daemon.client().rollouts.get('never')).rejects.toMatchObject({
      code: 'run_unknown',
    })
  })
})

describe('an end before the end', () => {
  const hanging = ({ signal }: { signal: AbortSignal }) =>
    new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    })
  const tasks = Array.from({ length: 20 }, (_, i) => ({ id: `t${i}` }))

  test('cancels what is not over, and every row says so', async () => {
    const client = daemon.client()
    const run = client.rollouts.map(tasks, hanging, { from: await daemon.image(), concurrency: 4 })
    await until(async () => (await run.view()).counts.running === 4)
    await run.cancel()
    const rows = await run.wait()
    expect(rows).toHaveLength(20)
    expect(new Set(rows.map(({ outcome }) => outcome))).toEqual(new Set(['cancelled_user']))
  })

  test('cancels at the end of the block, also before there was a run', async () => {
    const client = daemon.client()
    const from = await daemon.image()
    let name: string
    {
      await using run = client.rollouts.map(tasks, hanging, { from })
      name = run.name
    }
    await expect(client.rollouts.get(name)).rejects.toMatchObject({ code: 'run_unknown' })
    {
      await using run = client.rollouts.map(tasks, hanging, { from })
      await until(async () => (await run.view()).counts.running > 0)
      name = run.name
    }
    const reader = await client.rollouts.get(name)
    expect(await reader.wait()).toHaveLength(20)
    await reader.delete()
    await expect(reader.view()).rejects.toMatchObject({ code: 'run_unknown' })
  })

  test('tells at the end of the block what nobody was told before', async () => {
    const leaving = (async () => {
      await using run = daemon.client().rollouts.map([], hanging, { from: await daemon.image() })
      await until(async () => {
        await run.created.catch(() => undefined)
        return true
      })
    })()
    await expect(leaving).rejects.toMatchObject({ message: 'there are no tasks' })
  })

  test('stops this process with its signal, and leaves the run', async () => {
    const controller = new AbortController()
    const client = daemon.client()
    const options = { from: await daemon.image(), signal: controller.signal }
    const run = client.rollouts.map(tasks, hanging, options)
    const reading = run.wait()
    await until(async () => (await run.view()).counts.running > 0)
    controller.abort(new Error('that is all'))
    await expect(reading).rejects.toThrow('that is all')
    const left = await client.rollouts.get(run.name)
    await until(async () => (await left.view()).state === 'waiting')
    await left.cancel()
  })

  test('gives the leases of a worker that is gone to another one', async () => {
    const options = { from: await daemon.image(), name: 'handed-over', concurrency: 4 }
    const first = daemon.client()
    const run = first.rollouts.map(tasks, hanging, options)
    await until(async () => (await run.view()).counts.running === 4)
    await first.close()
    const second = daemon.client().rollouts.map(tasks, async () => ({ reward: 1 }), options)
    const rows = await second.wait()
    expect(rows).toHaveLength(20)
    expect(rows.every(({ outcome, reward }) => outcome === 'graded' && reward === 1)).toBe(true)
    expect(Math.max(...rows.map(({ attempts }) => attempts.length))).toBe(2)
  })
})

test('a daemon that is started again in mid-run loses and doubles nothing', async () => {
  await using own = await startFakeDaemon()
  const tasks = Array.from({ length: 120 }, (_, i) => ({ id: `t${i}` }))
  const calls = new Map<string, number>()
  const run = own.client().rollouts.map(
    tasks,
    async ({ sandbox, key }) => {
      calls.set(key, (calls.get(key) ?? 0) + 1)
      await sandbox.files.write('/key', key)
      const { stdout } = await sandbox.exec(['cat', '/key'])
      return { reward: stdout === key ? 1 : 0, data: 'd'.repeat(10_000) }
    },
    { from: await own.image(), concurrency: 24 },
  )
  const rows: ResultRow[] = []
  for await (const row of run) {
    rows.push(row)
    if (rows.length === 30 || rows.length === 70) await own.restart()
  }
  expect(rows.map(({ key }) => key).sort()).toEqual(tasks.map(({ id }) => id).sort())
  expect(rows.filter(({ reward }) => reward !== 1)).toEqual([])
})

test('1,000 tasks and results of 20 KB pass at once', async () => {
  const text = 'x'.repeat(20_000)
  const tasks = Array.from({ length: 1_000 }, (_, i) => ({ id: `t${i}`, text }))
  let running = 0
  let release: () => void = () => undefined
  const all = new Promise<void>((resolve) => (release = resolve))
  const run = daemon.client().rollouts.map(
    tasks,
    async ({ task }) => {
      if (++running === 1_000) release()
      await all
      return { reward: 1, data: task.text }
    },
    { from: await daemon.image(), concurrency: 1_000 },
  )
  const rows = await run.wait()
  expect(rows).toHaveLength(1_000)
  expect(rows.every(({ data, attempt }) => data === text && attempt === 1)).toBe(true)
})

test('a client without a daemon says at once what to do', async () => {
  const url = await (async () => {
    await using own = await startFakeDaemon()
    return own.url
  })()
  const client = new Sandlot({ url, apiKey: 'k' })
  await expect(client.sandboxes.get('sb_aaaaaaaaaaaaaaaaaaaa')).rejects.toMatchObject({
    code: 'unreachable',
    hint: expect.stringContaining('sandlot serve'),
  })
  const run = client.rollouts.map([1], async () => ({ reward: 1 }), { from: 'im_a' })
  await expect(run.wait()).rejects.toMatchObject({ code: 'unreachable' })
})
