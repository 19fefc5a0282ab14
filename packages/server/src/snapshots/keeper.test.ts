import { LIMITS } from '@sandlot/protocol'
import { Sandlot } from 'sandlot'
import { expect, test } from 'vitest'
import { createManualClock } from '../coordinator/simulated/clock.ts'
import { SERVER_LIMITS } from '../limits.ts'
import { startTestDaemon, testDirectories } from '../testing/daemon.ts'
import { until } from '../testing/until.ts'
import { forgetKept } from './keeper.ts'
import type { Snapshots } from './snapshots.ts'

test('what is kept is removed when its time is over, at a daemon’s start as well', async () => {
  const clock = createManualClock()
  const startMs = clock.now()
  const records = [1, 2, 3].map((n) => ({
    ...{ project: 'p', id: `sn_${n}`, untilMs: startMs + n * SERVER_LIMITS.keptEveryMs - 1 },
  }))
  const removed = new Set<string>()
  const snapshots = {
    past: (nowMs: number) => records.filter(({ untilMs }) => untilMs < nowMs),
    remove: async (_: string, id: string) => void removed.add(id),
  } as unknown as Snapshots
  const log = { warn: () => {} } as never
  clock.advance(SERVER_LIMITS.keptEveryMs)
  {
    using _forgetting = forgetKept({ snapshots }, { clock, log })
    clock.advance(0)
    await until(() => removed.size === 1)
    clock.advance(SERVER_LIMITS.keptEveryMs)
    await until(() => removed.size === 2)
  }
  clock.advance(SERVER_LIMITS.keptEveryMs)
  expect([...removed]).toEqual(['sn_1', 'sn_2'])
})

test('what is kept is found by its run, whatever its key, and there for the next daemon', async () => {
  await using directories = await testDirectories()
  const key = `${'k'.repeat(LIMITS.tagLength - 1)}\u{1f4a5}`
  let kept: string | null | undefined
  {
    await using at = await startTestDaemon({ directories })
    await using client = new Sandlot({ url: at.url, apiKey: at.daemon.apiKey })
    const options = { name: 'r', from: await at.image(), keep: 'always' } as const
    const run = client.rollouts.map([{ id: key }], async () => ({ reward: 1 }), options)
    const [row] = await run.wait()
    kept = row?.kept
  }
  await using next = await startTestDaemon({ directories })
  const listed = await next.ask('GET', '/v1/snapshots?all=true&tag=run%3Dr')
  expect(listed.json).toMatchObject({ items: [{ id: kept, kind: 'filesystem', hidden: true }] })
  expect(listed.text).not.toContain('untilMs')
  expect((await next.ask('DELETE', '/v1/runs/r')).status).toBe(204)
  expect((await next.ask('GET', '/v1/snapshots?all=true')).json).toMatchObject({ items: [] })
})
