import { type Episode, type MapOptions, pythonFunction, type ResultRow } from 'sandlot'
import { expect, test } from 'vitest'
import { EAT_SLOWLY } from './harness/shells.ts'
import { story } from './harness/story.ts'
import { until } from './harness/until.ts'

const GOLD = 'def add(a, b):\n    return a + b\n'
const FORGERIES = {
  exits: 'import os\nprint(\'{"reward": 1}\', flush=True)\nos._exit(0)\n',
  lies: 'class Equal(int):\n    def __eq__(self, other): return True\ndef add(a, b): return Equal(7)\n',
  patches:
    'import builtins, sys\nbuiltins.AssertionError = Warning\nsys.exit = lambda *a: None\ndef add(a, b): return 0\n',
  loops: 'def add(a, b):\n    while True: pass\n',
} as const

const byKey = (rows: readonly ResultRow[]) => Object.fromEntries(rows.map((row) => [row.key, row]))

await story('a batch of rollouts', { pool: 2 }, (given) => {
  test('gold is 1, nothing is 0, a forger gets what its file deserves', async () => {
    const tasks = [
      { id: 'gold', file: GOLD },
      { id: 'empty', file: undefined },
      { id: 'wrong', file: 'def add(a, b):\n    return a - b\n' },
      ...Object.entries(FORGERIES).map(([id, file]) => ({ id, file })),
    ]
    await using run = given.client.rollouts.map(
      tasks,
      async ({ sandbox, task }) => {
        // What the episode leaves where the grader's own files will be is not seen by it.
        await sandbox.files.write('/grader/parent.py', 'print(\'{"reward": 1}\')')
        if (task.file !== undefined) await sandbox.files.write('/work/solution.py', task.file)
        return { data: { wrote: task.file?.length ?? 0 } }
      },
      {
        from: given.image,
        concurrency: 3,
        resources: { memory: '512MiB', disk: '64MiB' },
        tags: { suite: 'rollouts' },
        grade: pythonFunction({
          candidate: '/work/solution.py',
          timeoutSeconds: 10,
          test: () => ({
            test: 'def check(candidate):\n    assert candidate(2, 3) == 5\n    assert candidate(-1, 1) == 0\n',
            entryPoint: 'add',
          }),
        }),
      },
    )
    const rows = byKey(await run.wait())
    expect(Object.values(rows).map(({ key, outcome, reward }) => [key, outcome, reward])).toEqual(
      expect.arrayContaining(tasks.map(({ id }) => [id, 'graded', id === 'gold' ? 1 : 0])),
    )
    const { gold } = rows
    expect(gold).toMatchObject({
      ...{ schema: 1, attempt: 1, valid: true, flags: [], error: null, cause: [], node: 'local' },
      data: { wrote: GOLD.length },
      tags: { suite: 'rollouts' },
      attempts: [{ attempt: 1, outcome: 'graded', sandbox: gold?.sandbox }],
    })
    expect(gold?.sandbox).toMatch(/^sb_[a-z0-9]{20}$/)
    for (const { phases, usage, startedAt, endedAt } of Object.values(rows)) {
      for (const ms of Object.values(phases)) expect(ms).toBeGreaterThanOrEqual(0)
      expect(phases.agentMs).toBeGreaterThan(0)
      expect(phases.gradeMs).toBeGreaterThan(0)
      expect(phases.teardownMs).toBeGreaterThan(0)
      expect(phases.modelMs).toBe(0)
      expect(usage.memoryPeakBytes).toBeGreaterThan(1_000_000)
      expect(Date.parse(endedAt)).toBeGreaterThanOrEqual(Date.parse(startedAt))
    }
    const report = await run.report()
    expect(report).toMatchObject({ rewardMean: 1 / tasks.length, attempts: tasks.length })
    expect(await Array.fromAsync(given.client.sandboxes.list())).toEqual([])
  })

  test('a command grades in a world of its own, with tests that the episode never saw', async () => {
    const tasks = [
      { id: 'right', shell: 'echo 42 >/work/answer' },
      { id: 'wrong', shell: 'echo 41 >/work/answer' },
      { id: 'nothing', shell: 'true' },
      { id: 'test-seen', shell: 'cat /tests/check.sh >/work/answer' },
      {
        id: 'test-forged',
        shell: 'mkdir -p /tests; echo "exit 0" >/tests/check.sh; chmod a-w /tests/check.sh',
      },
      {
        id: 'test-raced',
        shell:
          'mkdir -p /tests; setsid sh -c "while :; do echo exit 0 >/tests/check.sh; done" >/dev/null 2>&1 &',
      },
      // A test that can't be brought would make of a 0 that was earned no reward at all.
      { id: 'test-blocked-by-file', shell: 'echo in the way >/tests' },
      { id: 'test-blocked-by-directory', shell: 'mkdir -p /tests/check.sh/more' },
      { id: 'test-blocked-by-pipe', shell: 'mkdir /tests; mkfifo /tests/check.sh' },
      { id: 'test-blocked-by-links', shell: 'ln -s nowhere /tests' },
      { id: 'memory-eaten', shell: EAT_SLOWLY },
      { id: 'test-led-away', shell: 'mkdir /tests; ln -s /dev/null /tests/check.sh' },
    ]
    await using run = given.client.rollouts.map(
      tasks,
      async ({ sandbox, task }) => {
        await sandbox.files.makeDirectory('/work')
        const { exitCode } = await sandbox.exec(task.shell)
        return { data: exitCode }
      },
      {
        from: given.image,
        concurrency: 3,
        resources: { memory: '256MiB', disk: '48MiB' },
        grade: {
          run: ['sh', '/tests/check.sh'],
          files: { '/tests/check.sh': '[ "$(cat /work/answer)" = "$WANTED" ]\n' },
          env: { WANTED: '42' },
        },
      },
    )
    const rows = await run.wait()
    expect(
      Object.fromEntries(rows.map(({ key, outcome, reward }) => [key, `${outcome} ${reward}`])),
    ).toEqual(
      Object.fromEntries(
        tasks.map(({ id }) => [
          id,
          id === 'right' ? 'graded 1' : id === 'memory-eaten' ? 'sandbox_oom 0' : 'graded 0',
        ]),
      ),
    )
    expect(byKey(rows)['test-seen']?.data).not.toBe(0)
  })

  test('a grader reaches the servers of the episode in the same world alone', async () => {
    const server =
      'setsid python3 -m http.server 8000 --bind 127.0.0.1 -d /etc >/dev/null 2>&1 & for i in $(seq 200); do python3 -c "import socket; socket.create_connection((\'127.0.0.1\', 8000))" 2>/dev/null && exit 0; done; exit 1'
    const ask = [
      'python3',
      '-c',
      'import urllib.request; urllib.request.urlopen("http://127.0.0.1:8000/hostname", timeout=20)',
    ]
    const reward = async (where: 'same' | 'world') => {
      await using run = given.client.rollouts.map(
        [{ id: where }],
        async ({ sandbox }) => {
          await sandbox.files.write('/etc/hostname', 'it\n')
          const started = await sandbox.exec(server)
          if (started.exitCode !== 0) throw new Error(`no server: ${started.stderr}`)
        },
        { from: given.image, grade: { run: ask, in: where } },
      )
      const [row] = await run.wait()
      return [row?.outcome, row?.reward]
    }
    expect(await Promise.all([reward('same'), reward('world')])).toEqual([
      ['graded', 1],
      ['graded', 0],
    ])
  })

  test('a lost sandbox voids the reward of a worker that never noticed', async () => {
    const lost = async (retries: number) => {
      await using run = given.client.rollouts.map(
        [{ id: 'lost' }],
        async ({ sandbox, attempt }) => {
          if (attempt > 1) return { reward: 1 }
          try {
            const running = sandbox.exec('echo up; sleep 1000', { stream: true })
            for await (const _ of running) await given.daemon.killSandbox(sandbox.id)
            await running.result
          } catch {
            // Swallowed, as careless code does.
          }
          return { reward: 0 }
        },
        { from: given.image, retry: { infra: retries } },
      )
      const [row] = await run.wait()
      return row
    }
    const [once, again] = await Promise.all([lost(0), lost(1)])
    expect(once).toMatchObject({ outcome: 'infra_lost', valid: false, reward: null })
    expect(once?.error).toMatch(/lost/)
    expect(again).toMatchObject({
      ...{ outcome: 'graded', valid: true, reward: 1, attempt: 2 },
      attempts: [{ outcome: 'infra_lost' }, { outcome: 'graded' }],
    })
    expect(again?.attempts[0]?.sandbox).not.toBe(again?.sandbox)
  })

  test('each end is told apart, and only finite numbers are rewards', async () => {
    const ends: Record<string, () => unknown> = {
      throws: () => {
        throw new Error('my own mistake')
      },
      nan: () => ({ reward: Number.NaN }),
      infinite: () => ({ reward: Number.POSITIVE_INFINITY }),
      text: () => ({ reward: '1' }),
      rewards: () => ({ rewards: { style: 0.5, tests: 1 } }),
      limit: () => ({ limit: 'turns' }),
      nothing: () => undefined,
      huge: () => ({ reward: 1, data: 'x'.repeat(70 * 2 ** 20) }),
      negative: () => ({ reward: -2.5 }),
    }
    await using run = given.client.rollouts.map(
      Object.keys(ends).map((id) => ({ id })),
      async ({ task }) => ends[task.id]?.() as never,
      { from: given.image, concurrency: 3 },
    )
    const rows = byKey(await run.wait())
    const ended = Object.fromEntries(
      Object.values(rows).map(({ key, outcome, reward }) => [key, `${outcome} ${reward}`]),
    )
    expect(ended).toEqual({
      throws: 'episode_error null',
      nan: 'episode_error null',
      infinite: 'episode_error null',
      text: 'episode_error null',
      rewards: expect.stringMatching(/^graded /),
      limit: 'limit 0',
      nothing: 'episode_error null',
      huge: 'episode_error null',
      negative: 'graded -2.5',
    })
    expect(rows.throws?.cause.join('\n')).toContain('my own mistake')
    expect(rows.rewards?.rewards).toEqual({ style: 0.5, tests: 1 })
    expect(rows.huge?.cause.join('\n')).toMatch(/large|MiB|bytes/)
  })

  test('a failure of the set-up, the model or the grader is never a zero', async () => {
    const outcome = async (
      options: Partial<MapOptions<{ id: string }>>,
      episode: Episode<{ id: string }> = async () => {},
    ) => {
      await using run = given.client.rollouts.map([{ id: 'a' }], episode, {
        ...{ from: given.image, retry: { infra: 0, model: 0, grade: 0 } },
        ...options,
      })
      const [row] = await run.wait()
      return `${row?.outcome} ${row?.reward}: ${row?.cause.join('; ')}`
    }
    const broken = async () => {
      throw new Error('a mistake of the grader')
    }
    const grade = { run: async () => 1 }
    const model: Episode<{ id: string }> = async (context) => {
      await context.model(async () => {
        throw new Error('the endpoint is down')
      })
    }
    const found = await Promise.all([
      outcome({ grade, setup: ['echo prepared >/prepared', 'echo no such package >&2; exit 100'] }),
      outcome({ grade }, model),
      outcome({ grade: { run: broken } }),
      outcome({ grade: { run: async () => Number.NaN } }),
      outcome({ grade: { run: 'no-such-grader' } }),
      outcome({ grade: { run: 'sleep 1000' }, timeout: { grade: '1s' } }),
      outcome({ grade: { run: () => new Promise<number>(() => {}) }, timeout: { grade: '1s' } }),
    ])
    expect(found).toEqual([
      expect.stringMatching(/^setup_error null: .*no such package/),
      expect.stringMatching(/^model_error null: .*endpoint is down/),
      expect.stringMatching(/^grade_error null: .*mistake of the grader/),
      expect.stringMatching(/^grade_error null: /),
      expect.stringMatching(/^grade_error null: .*127/),
      expect.stringMatching(/^grade_timeout null: /),
      expect.stringMatching(/^grade_timeout null: /),
    ])
  })

  test('an episode that breaks its grader has its 0, and no way out of it', async () => {
    const breaks = ['rm /bin/sh', 'printf "\\177ELF" >/bin/sh', 'kill -9 1', 'true']
    await using run = given.client.rollouts.map(
      breaks.map((command, id) => ({ id, command })),
      async ({ sandbox, task }) => {
        await sandbox.exec(['/bin/dash', '-c', task.command]).catch(() => undefined)
      },
      {
        ...{ from: given.image, retry: { infra: 0, grade: 0 } },
        grade: { run: 'grep -q mounted /brought', files: { '/brought': 'mounted' } },
      },
    )
    const rows = (await run.wait()).sort((a, b) => a.index - b.index)
    expect(rows.map(({ outcome, reward }) => [outcome, reward])).toEqual([
      ['graded', 0],
      ['graded', 0],
      ['graded', 1],
      ['graded', 1],
    ])
    expect(rows[0]?.error).toContain('on the image alone it works')
  })

  test('a run that is cancelled ends at once, with nothing running', async () => {
    await using run = given.client.rollouts.map(
      Array.from({ length: 8 }, (_, id) => ({ id })),
      async ({ sandbox }) => {
        await sandbox.exec('sleep 1000')
        return { reward: 1 }
      },
      { from: given.image, concurrency: 3 },
    )
    await until('three run', async () => (await run.view()).counts.running === 3)
    await run.cancel()
    const rows = await run.wait()
    expect(rows.map(({ outcome, reward }) => `${outcome} ${reward}`)).toEqual(
      Array.from({ length: 8 }, () => 'cancelled_user null'),
    )
    expect(await Array.fromAsync(given.client.sandboxes.list())).toEqual([])
  })
})
