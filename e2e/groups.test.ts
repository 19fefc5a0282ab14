import type { ResultGroup } from 'sandlot'
import { expect, test } from 'vitest'
import { story } from './harness/story.ts'

const SHELLS: Record<string, readonly [string, string, string]> = {
  plain: ['exit 0', 'exit 1', 'exit 0'],
  slow: ['exit 0', 'sleep 600', 'exit 0'],
  masked: ['exit 0', 'exit 0', 'exit 7'],
  dropped: ['exit 0', 'exit 9', 'sleep 600'],
}

/** Resolves when all three members of a group have begun. */
function membersOnce() {
  const members = new Set<number>()
  const { promise, resolve } = Promise.withResolvers<void>()
  return {
    begins: async (member: number): Promise<void> => {
      members.add(member)
      if (members.size === 3) resolve()
      await promise
    },
  }
}

await story('groups of episodes', { pool: 2 }, (given) => {
  test('one is plain, one waits for nobody, one loses a vote, one is dropped, and nothing is left', async () => {
    const options = {
      ...{ name: 'groups', from: given.image, concurrency: 6 },
      resources: { memory: '256MiB' },
      group: { size: 3, need: 2, cut: { after: '10s' } },
      policy: { limit: 'mask', episode_error: 'drop-group' },
    } as const
    const begun = new Map(Object.keys(SHELLS).map((id) => [id, membersOnce()]))
    const run = given.client.rollouts.map(
      Object.entries(SHELLS).map(([id, shells]) => ({ id, shells })),
      async ({ sandbox, task, member, signal }) => {
        // No group is cut for a sandbox that comes up late, nor before its slow one works.
        await begun.get(task.id)?.begins(member)
        const { exitCode } = await sandbox.exec(task.shells[member] ?? 'exit 9', { signal })
        if (exitCode === 7) return { limit: 'turns' }
        if (exitCode === 9) throw new Error('as planned')
        return { reward: exitCode === 0 ? 1 : 0 }
      },
      options,
    )
    const batch = await run.batch(3)
    const groups = new Map(batch.groups.map((group) => [group.group, group]))
    const rewards = ({ rows }: ResultGroup) => rows.map(({ key, reward }) => [key, reward]).sort()
    expect([...groups.keys()].sort()).toEqual(['masked', 'plain', 'slow'])
    expect(rewards(groups.get('plain') as ResultGroup)).toEqual([
      ['plain#0', 1],
      ['plain#1', 0],
      ['plain#2', 1],
    ])
    expect(groups.get('plain')).toMatchObject({ reason: 'size', outcomes: { graded: 3 } })
    expect(rewards(groups.get('slow') as ResultGroup)).toEqual([
      ['slow#0', 1],
      ['slow#2', 1],
    ])
    expect(groups.get('slow')).toMatchObject({ reason: 'cut', members: 3 })
    expect(rewards(groups.get('masked') as ResultGroup)).toEqual([
      ['masked#0', 1],
      ['masked#1', 1],
    ])
    expect(groups.get('masked')).toMatchObject({
      reason: 'rest',
      outcomes: { graded: 2, limit: 1 },
    })

    const rows = new Map((await run.wait({ dropped: true })).map((row) => [row.key, row]))
    expect(rows.size).toBe(12)
    for (const key of ['slow#1', 'dropped#2']) {
      expect(rows.get(key)).toMatchObject({
        ...{ outcome: 'cancelled_quorum', valid: false, reward: null, group: key.slice(0, -2) },
      })
    }
    expect(rows.get('slow#1')?.phases.agentMs).toBeGreaterThan(1_000)
    const all = await Array.fromAsync(run.groups({ all: true }))
    expect(all.find(({ group }) => group === 'dropped')).toMatchObject({
      ...{ state: 'failed', reason: 'dropped', rows: [] },
      error: 'the policy drop-group met "dropped#1"',
    })
    // The cursor of the batch goes on behind it, in another process and after a SIGKILL as well.
    await given.daemon.kill()
    await given.daemon.start()
    const later = await given.client.rollouts.get('groups')
    expect(await later.batch(9, { from: batch.cursor })).toMatchObject({ groups: [] })
    expect(await Array.fromAsync(later.groups({ all: true }))).toEqual(all)
    expect((await later.report()).groups).toMatchObject({ open: 0, complete: 3, failed: 1 })
    expect(await Array.fromAsync(given.client.sandboxes.list())).toEqual([])
  })
})
