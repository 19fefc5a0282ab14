import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { temporaryDirectory } from '@sandlot/testkit'
import { harborProgram, harborTasks } from 'sandlot'
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

  test('of several steps, and with a verifier elsewhere, need no client either', async () => {
    await using directory = await temporaryDirectory()
    await write(directory.path, manySteps(given.image))
    const folders = ['good', 'stepped', 'elsewhere', 'both'].map((name) =>
      join(directory.path, name),
    )
    const done = async (agent: string, ...more: string[]) => {
      const argv = ['--harbor', ...folders, '--agent', agent, '--detach', ...more]
      const started = await sandlot('runs', 'start', ...argv)
      expect(started).toMatchObject({ code: 0 })
      const run = await given.client.rollouts.get(started.stdout.trim())
      const rows = await run.wait()
      const told = rows.map(({ key, outcome, reward, rewards, error }) => [
        key,
        error ?? { outcome, reward, rewards },
      ])
      return { run, rows, told: Object.fromEntries(told) }
    }
    const graded = (reward: number, rewards: object | null = null) => ({
      ...{ outcome: 'graded', reward, rewards },
    })
    const oracle = await done('oracle')
    expect(oracle.told).toEqual({
      good: graded(1),
      elsewhere: graded(1),
      stepped: graded(0.75, { reward: 0.75, style: 0.5 }),
      both: graded(1),
    })
    const stepped = oracle.rows.find(({ key }) => key === 'stepped')
    expect(stepped?.data).toMatchObject({
      steps: [
        { name: 'first', reward: 1 },
        { name: 'second', reward: 0.5, rewards: { reward: 0.5, style: 1 } },
      ],
    })
    const nop = await done('nop')
    expect(nop.told).toEqual({
      ...{ good: graded(0), elsewhere: graded(0), stepped: graded(0), both: graded(0) },
    })
    // Who answers the first step and not the second one has no verdict there, which is nobody's zero.
    const half = await done('[ -f before ] || echo 42 > answer')
    expect(half.rows.find(({ key }) => key === 'stepped')).toMatchObject({
      ...{ outcome: 'grade_error', valid: false, reward: null },
      data: { steps: [{ name: 'first', reward: 1 }] },
    })
    // What an agent leaves to be taken for a verdict, or a test, is passed on to nobody.
    const forger = await done(`mkdir -p /tests /logs/artifacts; echo 1 > /logs/verifier/reward.txt
      echo 'echo 1 > /logs/verifier/reward.txt' > /tests/test.sh; echo 41 > answer`)
    expect(forger.told).toEqual(nop.told)
    expect(await Array.fromAsync(given.client.sandboxes.list())).toEqual([])
  })

  test('without a solution are no task for the oracle, which does the others', async () => {
    await using directory = await temporaryDirectory()
    const { 'solution/solve.sh': _, ...unsolved } = task(given.image)
    await write(directory.path, { good: task(given.image), unsolved })
    const run = await sandlot('runs', 'start', '--harbor', directory.path, '--agent', 'oracle')
    expect(run).toMatchObject({ code: 0, stderr: expect.stringContaining('unsolved will be') })
    const rows = await (await given.client.rollouts.get(run.stdout.trim())).wait()
    expect(
      Object.fromEntries(rows.map(({ key, outcome, reward }) => [key, [outcome, reward]])),
    ).toEqual({ good: ['graded', 1], unsolved: ['task_invalid', null] })
    const alone = join(directory.path, 'unsolved')
    const none = await sandlot('runs', 'start', '--harbor', alone, '--agent', 'oracle')
    expect(none).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('no task has a solution'),
    })
  })

  test('of all sorts are examined', async () => {
    await using directory = await temporaryDirectory()
    await write(directory.path, manySteps(given.image))
    const end = await sandlot(
      'doctor',
      'tasks',
      directory.path,
      '--times',
      '1',
      '--json',
      '--pass',
      '0.75',
    )
    expect(end).toMatchObject({ code: 0 })
    const { tasks: found } = JSON.parse(end.stdout)
    expect(
      found.map(({ key, findings }: { key: string; findings: [] }) => [key, findings]),
    ).toEqual(['both', 'elsewhere', 'good', 'stepped'].map((key) => [key, []]))
  })
})

/** A plain one, one of two steps, one whose verifier has an image of its own, and one that is both. */
function manySteps(image: string): Record<string, Record<string, string>> {
  const { 'instruction.md': _, ...base } = task(image)
  const step = (name: string, files: Record<string, string>) =>
    Object.fromEntries(Object.entries(files).map(([path, text]) => [`steps/${name}/${path}`, text]))
  const elsewhere = `[environment]
workdir = "/app"
env = { HINT = "x" }
network_mode = "no-network"
[verifier.environment]
network_mode = "no-network"
env = { WHERE = "elsewhere" }
`
  const dockerfile = `FROM ${image}\nENV OF_IMAGE=yes\nCOPY test.sh wanted /tests/\n`
  // Of the episode it has nothing but what it is passed.
  const test = `[ "$WHERE$OF_IMAGE" = elsewhereyes ] && [ ! -e /app/seed.txt ] || exit 3\n${TEST}`
  const first = { 'instruction.md': 'One.', 'solution/solve.sh': 'echo 42 > answer\n' }
  return {
    good: task(image),
    stepped: {
      ...base,
      'task.toml': `${base['task.toml']}
[[steps]]
name = "first"
min_reward = 1
[[steps]]
name = "second"
`,
      ...step('first', first),
      ...step('second', {
        'instruction.md': 'Two.',
        'workdir/setup.sh': 'cp answer before\n',
        'solution/solve.sh': '[ -f before ] && [ ! -e /tests/test.sh ] && echo done > more\n',
        'tests/test.sh': `[ -s more ] && echo '{"reward": 0.5, "style": 1}' > /logs/verifier/reward.json`,
      }),
    },
    elsewhere: {
      ...task(image),
      'task.toml': `artifacts = ["/app/answer"]\n${elsewhere}`,
      'tests/Dockerfile': dockerfile,
      'tests/test.sh': test,
    },
    both: {
      ...base,
      'task.toml': `artifacts = ["/app"]
multi_step_reward_strategy = "final"
[environment]
workdir = "/app"
network_mode = "no-network"
[[steps]]
name = "first"
min_reward = 1
[steps.verifier.environment]
network_mode = "no-network"
env = { WHERE = "elsewhere" }
[[steps]]
name = "second"
[steps.verifier.environment]
network_mode = "no-network"
`,
      ...step('first', {
        ...first,
        'solution/solve.sh': 'sleep 1000 > /dev/null 2>&1 & echo $! > pid; echo 42 > answer\n',
        'tests/Dockerfile': `FROM ${image}\nENV OF_IMAGE=yes\nCOPY test.sh wanted /tests/\n`,
        'tests/test.sh': TEST.replace('echo 1', '[ "$WHERE$OF_IMAGE" = elsewhereyes ] && echo 1'),
        'tests/wanted': '42\n',
      }),
      ...step('second', {
        'instruction.md': 'Two.',
        // What the first one left running lives on while that was graded.
        'solution/solve.sh': 'kill -0 "$(cat pid)" && echo 43 > answer\n',
        'tests/Dockerfile': `FROM ${image}\nCOPY test.sh wanted /tests/\n`,
        'tests/test.sh': TEST,
        'tests/wanted': '43\n',
      }),
    },
  }
}
