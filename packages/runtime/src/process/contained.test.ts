import { temporaryDirectory } from '@sandlot/testkit'
import { expect, test } from 'vitest'
import { listProcesses } from '../leftovers/process-table.ts'
import { CONTAINED, killContained } from './contained.ts'
import { runStreaming } from './run-streaming.ts'

/** Many that hold nothing of what their parent reads, and have much to give back when they end. */
const FORKS = `
  for n in 1 2 3 4 5 6 7 8; do
    (exec >/dev/null 2>&1; held=$(head -c 4000000 /dev/zero | tr '\\0' x); while :; do mkdir -p "$0/$n"; done) &
  done
  sleep 0.3; echo begun >&2; wait`

test('all of a program that is given up have ended when that is told', async () => {
  await using directory = await temporaryDirectory()
  for (let round = 0; round < 10; round++) {
    const leaving = new AbortController()
    const running = runStreaming('setpriv', [...CONTAINED, 'sh', '-c', FORKS, directory.path], {
      ...{ signal: leaving.signal, timeoutMs: 60_000, kill: killContained },
      ...{ env: { PATH: '/usr/bin:/bin' }, cwd: '/', lineBytesMax: 100 },
      onStderrLine: () => leaving.abort(new Error('enough')),
      consume: async (stdout) => await Array.fromAsync(stdout),
    })
    await expect(running).rejects.toThrow('enough')
    const left = listProcesses().filter(({ command }) => command.includes(directory.path))
    expect(left, `round ${round}`).toEqual([])
  }
})

test('one that takes too long is ended, and says so', async () => {
  const outcome = await runStreaming('setpriv', [...CONTAINED, 'sleep', '1000'], {
    ...{ signal: new AbortController().signal, timeoutMs: 200, kill: killContained },
    ...{ env: { PATH: '/usr/bin:/bin' }, cwd: '/', lineBytesMax: 100 },
    onStderrLine: () => {},
    consume: async (stdout) => await Array.fromAsync(stdout),
  })
  expect(outcome).toMatchObject({ timedOut: true, problem: expect.any(String) })
})
