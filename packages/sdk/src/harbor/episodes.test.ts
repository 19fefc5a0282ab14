import { expect, test } from 'vitest'
import { harborEpisodes } from './episodes.ts'
import { harborTasks } from './harbor-tasks.ts'
import { below, folderOf, LEAST } from './testing/folder.ts'

const client = { sandboxes: { create: () => Promise.reject(new Error('none is made here')) } }

const STEPS = {
  ...LEAST,
  'task.toml': `[agent]
timeout_sec = 100
[[steps]]
name = "a"
[steps.verifier]
timeout_sec = 5
[[steps]]
name = "b"
[steps.agent]
timeout_sec = 10
[steps.verifier.environment]
docker_image = "v:1"
`,
  'steps/a/instruction.md': 'A',
  'steps/b/instruction.md': 'B',
  'steps/a/solution/solve.sh': 'true',
}

test('a task has its image, and the time of all its steps', async () => {
  await using folder = await folderOf(below('t', STEPS))
  const given = await harborTasks(folder.path)
  const { tasks, options } = harborEpisodes(given, { agent: 'nop', client })
  expect(tasks).toEqual([{ id: 't' }])
  const own = await options.each?.({ id: 't' }, 0)
  expect(own).toMatchObject({
    // Of the steps, and a minute each for what comes before and for the verifier's own sandbox.
    timeout: { agent: (100 + 5 + 10 + 600 + 60 + 60) * 1_000 },
    network: { agent: 'packages' },
  })
  expect(own?.from).toBe(given[0]?.environment.image)
})

test('what can’t be run is refused at once', async () => {
  await using folder = await folderOf({
    ...below('steps', STEPS),
    ...below('network', {
      ...LEAST,
      'task.toml': '[verifier]\nnetwork_mode = "no-network"\n',
      'solution/solve.sh': 'true',
    }),
    ...below('exclude', {
      ...LEAST,
      'task.toml': `artifacts = [{ source = "/a", exclude = ["b"] }]
[verifier.environment]
docker_image = "v:1"
`,
      'solution/solve.sh': 'true',
    }),
  })
  const tasks = await harborTasks(folder.path)
  expect(() => harborEpisodes(tasks, { agent: 'oracle', client })).toThrow(
    expect.objectContaining({
      details: {
        problems: [
          expect.objectContaining({ file: 'exclude/task.toml', field: 'artifacts' }),
          expect.objectContaining({ file: 'network/task.toml', field: 'network_mode' }),
          expect.objectContaining({ file: 'steps/steps/b/solution/solve.sh' }),
        ],
      },
    }),
  )
})

test('a task of other folders is not done by the tests of one of these', async () => {
  await using folder = await folderOf(below('t', STEPS))
  const { episode, options } = harborEpisodes(await harborTasks(folder.path), {
    ...{ agent: 'nop', client },
  })
  const other = { task: { id: 'other' }, signal: new AbortController().signal }
  await expect(episode(other as never)).rejects.toMatchObject({ code: 'invalid_request' })
  // Each part has a deadline of its own: what goes beyond all of them is no zero of the policy.
  expect(options.policy).toEqual({ agent_timeout: 'mask' })
})
