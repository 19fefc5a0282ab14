import { expect, test } from 'vitest'
import { story } from './harness/story.ts'

/** A processor costs a dollar a second. */
const SANDLOT_PRICES = '{"currency":"USD","cpuHour":3600}'

await story('usage', { pool: 2, environment: { SANDLOT_PRICES } }, (given) => {
  test('rows, report and ledger say the same, and a killed daemon neither loses nor doubles any of it', async () => {
    const { client, daemon, image: from } = given
    const resources = { cpu: { request: 0.5, limit: 1 }, memory: '256MiB' } as const
    const sandbox = await client.sandboxes.create({ from, resources })
    const options = {
      ...{ name: 'metered', from, resources, concurrency: 2 },
      retry: { infra: 1 },
      group: { size: 2 },
    } as const
    const run = client.rollouts.map(
      ['a', 'b', 'c'].map((id) => ({ id })),
      async ({ sandbox: own, attempt, task, member, signal }) => {
        // One episode loses its first sandbox and is tried again.
        if (task.id === 'a' && member === 0 && attempt === 1) await daemon.killSandbox(own.id)
        const { exitCode } = await own.exec('sleep 0.3', { signal })
        return { reward: exitCode === 0 ? 1 : 0 }
      },
      options,
    )
    for (let groups = 0; groups < 3; ) groups += (await run.batch(1)).groups.length
    const rows = await run.wait()
    const report = await run.report()
    expect(report.run.outcomes).toEqual({ graded: 6 })
    const cost = report.cost
    expect(cost).toMatchObject({ currency: 'USD' })
    const counted = rows.reduce((sum, row) => sum + (row.cost ?? 0), 0)
    const second = rows.find(({ attempt }) => attempt === 2)?.cost ?? 0
    // What is in no row is the attempt that was lost.
    expect(cost?.micros).toBeGreaterThanOrEqual(counted)
    expect(cost?.retriesMicros).toBe(second)
    expect(second).toBeGreaterThan(0)
    expect(report.saturation?.trainer?.waitedMs).toBeGreaterThan(0)
    expect(report.saturation?.limitedMs.concurrency).toBeGreaterThan(0)

    const ledger = async () => {
      const { lines, total } = await client.usage({ by: 'run' })
      const lineOf = (kind: string) => lines.find((line) => line.kind === kind)
      return { ofRun: lineOf('episode'), own: lineOf('sandbox'), total }
    }
    const before = await ledger()
    expect(before.ofRun).toMatchObject({ run: 'metered', sandboxes: 7, costMicros: cost?.micros })
    expect(before.ofRun?.retries).toMatchObject({ sandboxes: 1, costMicros: second })
    expect(before.own).toMatchObject({ sandboxes: 1 })

    await daemon.kill()
    await daemon.start()
    const after = await ledger()
    expect(after.ofRun).toEqual(before.ofRun)
    await sandbox.stop()
    const ended = await ledger()
    expect(ended.ofRun).toEqual(before.ofRun)
    expect(ended.own?.sandboxes).toBe(1)
    const { seconds = 0, costMicros } = ended.own ?? {}
    expect(seconds).toBeGreaterThan(0)
    expect(Math.abs((costMicros ?? 0) / 1e6 - seconds / 2)).toBeLessThan(0.01)
    expect(ended.total.costMicros).toBe((ended.ofRun?.costMicros ?? 0) + (costMicros ?? 0))
  })
})
