/** A function of another module in containers: called once, for many inputs, and by a queue that outlives this program. */
import { Sandlot } from 'sandlot'

await using client = await Sandlot.local()
const score = client.fn<typeof import('./reward.ts')>(new URL('./reward.ts', import.meta.url), {
  export: 'score',
  concurrency: 4,
})
console.log('once', await score.remote({ answer: ' 42\n', wanted: '42' }))

const answers = ['41', '42', '43'].map((answer) => ({ answer, wanted: '42' }))
for await (const row of score.map(answers, { ordered: true })) {
  console.log(row.index, row.ok ? row.value : row.error.message)
}

const queue = client.queue('scores', score, { autoscale: { maxContainers: 2, idle: '10s' } })
await queue.putMany(answers, { key: ({ answer }) => answer })
const rewards: Record<string, number> = {}
for await (const row of queue.results({ until: 'empty' })) {
  if (row.ok) rewards[row.key ?? row.task] = row.value
}
console.log(Object.entries(rewards).sort())
await queue.delete()
