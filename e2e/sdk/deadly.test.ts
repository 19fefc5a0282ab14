import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { startFakeDaemon, until } from './fake-daemon.ts'

const repository = fileURLToPath(new URL('../..', import.meta.url))
/** A worker that dies of the first line of its first episode. */
const CODE = `
  import { Sandlot } from 'sandlot'
  const [name, from] = process.argv.slice(1)
  const end = () => process.kill(process.pid, 'SIGKILL')
  await new Sandlot().rollouts.map([{ id: 'deadly' }], end, { name, from }).wait()`

test('of an episode that ends its process at once it is known that it began', async () => {
  await using daemon = await startFakeDaemon()
  const { id: from } = await daemon.image()
  const child = spawn(process.execPath, ['--input-type=module', '-e', CODE, 'deadly', from], {
    cwd: repository,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, SANDLOT_URL: daemon.url, SANDLOT_API_KEY: daemon.apiKey },
  })
  expect(await once(child, 'exit')).toEqual([null, 'SIGKILL'])
  const run = await daemon.client().rollouts.get('deadly')
  // So that it counts among the three processes that an episode may end.
  await until(async () => {
    const { progress, attempts } = await run.episode('deadly')
    // Ten seconds later its lease has lapsed.
    return progress[0]?.phase === 'agent' || (attempts[0]?.phases.agentMs ?? 0) > 0
  })
})
