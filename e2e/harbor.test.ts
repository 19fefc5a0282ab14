import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { temporaryDirectory } from '@sandlot/testkit'
import { type HarborAgent, harborEpisodes, harborProgram, harborTasks } from 'sandlot'
import { expect, test } from 'vitest'
import { type CommandEnd, runCommand } from './harness/command.ts'
import { story } from './harness/story.ts'

const TEST = `#!/bin/bash
set -u
cd "$(dirname "$0")"
if [[ "$(cat /app/answer 2>/dev/null)" == "$(cat wanted)" ]]
then echo 1 > /logs/verifier/reward.txt
else echo 0 > /logs/verifier/reward.txt
fi
`

/** A task whose answer is 42, with these files besides or instead. */
function task(image: string, files: Record<string, string> = {}): Record<string, string> {
  return {
    'task.toml': `schema_version = "1.3"
[environment]
network_mode = "no-network"
memory_mb = 256
storage_mb = 64
workdir = "/app"
env = { HINT = "seven times six" }
[agent]
timeout_sec = 600
[verifier]
timeout_sec = 600
`,
    'instruction.md': '<!-- canary 1234 -->\n\nWrite the answer to /app/answer.\n',
    'environment/Dockerfile': `FROM ${image}\nWORKDIR /app\nCOPY seed.txt .\n`,
    'environment/seed.txt': 'seed\n',
    'tests/test.sh': TEST,
    'tests/wanted': '42\n',
    'solution/solve.sh':
      '#!/bin/bash\n[[ -n "$HINT" && -f seed.txt ]] && cp "$(dirname "$0")/said" answer\n',
    'solution/said': '42\n',
    ...files,
  }
}

const json = `{"reward": 1, "style": 0.5}`

/** What is wrong with each is its name. */
function tasks(image: string): Record<string, Record<string, string>> {
  return {
    good: task(image),
    named: task(image, {
      'tests/test.sh': `[ -s answer ] && echo '${json}' > /logs/verifier/reward.json || echo 0 > /logs/verifier/reward.txt\n`,
    }),
    broken: task(image, { 'solution/said': '41\n' }),
    // Of three trials of gold the first one fails.
    flaky: task(image, {
      'tests/test.sh': `[ "\${SANDLOT_KEY##*/}" = 1 ] && rm -f answer\n${TEST}`,
    }),
    free: task(image, { 'tests/test.sh': 'echo 1 > /logs/verifier/reward.txt\n' }),
    ungraded: task(image, { 'tests/test.sh': 'echo "no pytest here" >&2; exit 3\n' }),
    unbuilt: task(image, {
      'environment/Dockerfile': `FROM ${image}\nRUN echo no compiler here; exit 3\n`,
    }),
  }
}

/** Its answer is there as long as its process is, which goes on when the agent is done. */
const SERVES = `mkdir /served; echo 42 > /served/answer
cd /served; sleep 1000 > /dev/null 2>&1 & ln -s /proc/$!/cwd/answer /app/answer`

async function write(directory: string, folders: Record<string, Record<string, string>>) {
  for (const [folder, files] of Object.entries(folders)) {
    for (const [name, text] of Object.entries(files)) {
      const path = join(directory, folder, name)
      await mkdir(dirname(path), { recursive: true })
      await writeFile(path, text)
    }
  }
}

await story('task folders in Harbor’s format', { pool: 2 }, (given) => {
  const sandlot = (...argv: string[]): Promise<CommandEnd> =>
    runCommand(argv, { environment: given.daemon.environment })

  test('are examined: broken, flaky and free ones are found, and listed, and not run', async () => {
    await using directory = await temporaryDirectory()
    await write(directory.path, tasks(given.image))
    const list = join(directory.path, 'quarantine.json')
    const end = await sandlot(
      'doctor',
      'tasks',
      directory.path,
      '--times',
      '2',
      '--json',
      '--write',
      list,
    )
    expect(end).toMatchObject({ code: 1 })
    const { tasks: found } = JSON.parse(end.stdout)
    const told = Object.fromEntries(
      found.map((each: { key: string; findings: { condition: string; why: string }[] }) => [
        each.key,
        each.findings.map(({ condition, why }) => `${condition}: ${why}`),
      ]),
    )
    expect(told).toEqual({
      good: [],
      named: [],
      broken: ['broken: gold: reward 0'],
      flaky: ['flaky: gold solves it in 1 of 2 trials; else reward 0'],
      free: ['free: doing nothing solves it: reward 1'],
      ungraded: [
        expect.stringMatching(/^broken: gold: grade_error: .*no pytest here/s),
        expect.stringMatching(/^broken: no verdict where nothing was done: /),
      ],
      unbuilt: [
        expect.stringMatching(/^broken: gold: its image can't be built: .*no compiler here/s),
      ],
    })
    const { tasks: held } = JSON.parse(await readFile(list, 'utf8'))
    expect(held.map(({ key }: { key: string }) => key)).toEqual([
      ...['broken', 'flaky', 'free', 'unbuilt', 'ungraded'],
    ])
    const chosen = ['--harbor', directory.path, '--agent', 'oracle', '--quarantine', list]
    const started = await sandlot('runs', 'start', ...chosen, '--detach')
    expect(started).toMatchObject({ code: 0 })
    const rows = await (await given.client.rollouts.get(started.stdout.trim())).wait()
    expect(rows.map(({ key, reward, rewards }) => ({ key, reward, rewards }))).toEqual(
      expect.arrayContaining([
        { key: 'good', reward: 1, rewards: null },
        { key: 'named', reward: 1, rewards: { reward: 1, style: 0.5 } },
      ]),
    )
    const invalid = rows.filter(({ outcome }) => outcome === 'task_invalid')
    expect(invalid.map(({ key }) => key).sort()).toEqual(
      held.map(({ key }: { key: string }) => key),
    )
    expect(rows).toHaveLength(2 + held.length)
  })

  test('give an agent what it is asked, and no verdict of its own', async () => {
    await using directory = await temporaryDirectory()
    await write(directory.path, { good: task(given.image) })
    const [one] = await harborTasks(directory.path)
    if (!one) throw new Error('there is one')
    const rowOf = async (command: string) => {
      const run = given.client.rollouts.program([one], {
        ...harborProgram([one], { agent: { command } }),
      })
      const [row] = await run.wait()
      if (!row) throw new Error('there is one')
      return { run, row }
    }
    const honest = await rowOf(
      'cat "$INSTRUCTION_FILE"; echo "$INSTRUCTION" | head -1; pwd; ls -A /solution /tests /logs; echo 42 > answer',
    )
    expect(honest.row).toMatchObject({ outcome: 'graded', reward: 1 })
    const seen = Buffer.from(await honest.run.artifact(honest.row, 'agent.stdout')).toString()
    const asked = 'Write the answer to /app/answer.'
    expect(seen.split('\n')).toEqual([
      ...[asked, asked, '/app', '/logs:', 'agent', 'artifacts', 'verifier', ''],
    ])
    const forger = await rowOf(`
      echo 1 > /logs/verifier/reward.txt; echo '{"reward": 1}' > /logs/verifier/reward.json
      mkdir -p /tests; echo 41 > /tests/wanted; echo 41 > answer; ln -s /tmp /tests/more`)
    expect(forger.row).toMatchObject({ outcome: 'graded', reward: 0 })
    const vandal = await rowOf(
      'echo 42 > answer; rm -rf /logs; ln -s /nowhere /logs; ln -s /nowhere /tests',
    )
    expect(vandal.row).toMatchObject({ outcome: 'graded', reward: 1 })
    const alive = given.client.rollouts.program([one], {
      ...harborProgram([one], { agent: { command: SERVES }, in: 'same' }),
    })
    expect(await alive.wait()).toMatchObject([{ outcome: 'graded', reward: 1 }])
    expect((await rowOf(SERVES)).row).toMatchObject({ outcome: 'graded', reward: 0 })
  })

  test('of several steps, and with a verifier elsewhere, are done by a worker', async () => {
    await using directory = await temporaryDirectory()
    const { 'instruction.md': _, ...base } = task(given.image)
    const step = (name: string, files: Record<string, string>) =>
      Object.fromEntries(
        Object.entries(files).map(([path, text]) => [`steps/${name}/${path}`, text]),
      )
    await write(directory.path, {
      stepped: {
        ...base,
        'task.toml': `${base['task.toml']}
[[steps]]
name = "first"
min_reward = 1
[[steps]]
name = "second"
`,
        ...step('first', { 'instruction.md': 'One.', 'solution/solve.sh': 'echo 42 > answer\n' }),
        ...step('second', {
          'instruction.md': 'Two.',
          'workdir/setup.sh': 'cp answer before\n',
          'solution/solve.sh': '[ -f before ] && echo done > more\n',
          'tests/test.sh': `[ -s more ] && echo '{"reward": 0.5, "style": 1}' > /logs/verifier/reward.json`,
        }),
      },
      elsewhere: {
        ...task(given.image),
        'task.toml': `artifacts = ["/app/answer"]
[environment]
workdir = "/app"
env = { HINT = "x" }
network_mode = "no-network"
[verifier.environment]
network_mode = "no-network"
`,
        'tests/Dockerfile': `FROM ${given.image}\nCOPY test.sh wanted /tests/\n`,
      },
    })
    const tasks = await harborTasks(directory.path)
    const rewards = async (agent: HarborAgent) => {
      const { client } = given
      const { tasks: all, episode, options } = harborEpisodes(tasks, { agent, client })
      const rows = await client.rollouts.map(all, episode, options).wait()
      return Object.fromEntries(
        rows.map(({ key, outcome, reward, rewards, error }) => [
          key,
          error ?? { outcome, reward, rewards },
        ]),
      )
    }
    expect(await rewards('oracle')).toEqual({
      elsewhere: { outcome: 'graded', reward: 1, rewards: { reward: 1 } },
      stepped: { outcome: 'graded', reward: 0.75, rewards: { reward: 0.75, style: 0.5 } },
    })
    expect(await rewards('nop')).toEqual({
      elsewhere: { outcome: 'graded', reward: 0, rewards: { reward: 0 } },
      stepped: { outcome: 'graded', reward: 0, rewards: { reward: 0 } },
    })
    // Who answers the first step and not the second one has no verdict there, which is nobody's zero.
    const half = await rewards({ command: '[ -f before ] || echo 42 > answer' })
    expect(half.stepped).toMatch(/step second: its verifier left no/)
    expect(await Array.fromAsync(given.client.sandboxes.list())).toEqual([])
  })
})
