import { Image, Sandlot, simulatedModel, simulatedTrainer } from 'sandlot'

const prompts = Array.from({ length: 6 }, (_, n) => ({ id: `sum-${n}`, a: n, b: n + 1 }))
const trainer = simulatedTrainer({ step: '50ms' }) // the step of your optimizer goes here
const policy = simulatedModel({
  latency: 'lognormal:20ms,1', // your model goes here: this one is wrong less often with each step
  answer: ({ a, b }: { a: number; b: number }, random) =>
    a + b + Math.floor(random * Math.max(1, 4 - trainer.version)),
})

await using client = await Sandlot.local()
await using run = client.rollouts.map(
  prompts,
  async ({ sandbox, task, seed, model }) => {
    const answer = await model(({ signal }) => policy(task, { seed, signal }))
    const { exitCode } = await sandbox.exec(`[ $((${task.a} + ${task.b})) -eq ${answer} ]`)
    return { reward: exitCode === 0 ? 1 : 0 }
  },
  {
    from: Image.debian('bookworm'),
    onLog: console.error, // of the image, where it is built first
    concurrency: 4,
    group: { size: 4, need: 3, cut: { after: '2m' }, maxLag: 2 },
  },
)
for (;;) {
  const { groups, cursor } = await run.batch(2)
  if (groups.length === 0) break
  for (const { group, rows } of groups) {
    const rewards = rows.map(({ reward }) => reward ?? 0)
    const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length
    const advantages = rewards.map((reward) => reward - mean)
    console.log(`step ${trainer.version + 1}: ${group}`, advantages)
  }
  const version = await trainer.step(run) // save `cursor` with its checkpoint
  console.log(`step ${version}: saved`, cursor.length > 0)
}
