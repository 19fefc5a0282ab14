import { Image, Sandlot } from 'sandlot'

const prompts = Array.from({ length: 6 }, (_, n) => ({ id: `sum-${n}`, a: n, b: n + 1 }))
let error = 3 // your model goes here: this one is wrong less often with each step
const policy = async (a: number, b: number, seed: number) => a + b + (seed % (error + 1))

await using client = await Sandlot.local()
await using run = client.rollouts.map(
  prompts,
  async ({ sandbox, task: { a, b }, seed, model }) => {
    const answer = await model(() => policy(a, b, seed))
    const { exitCode } = await sandbox.exec(`[ $((${a} + ${b})) -eq ${answer} ]`)
    return { reward: exitCode === 0 ? 1 : 0 }
  },
  {
    from: Image.debian('bookworm'),
    concurrency: 4,
    group: { size: 4, need: 3, cut: { after: '2m' }, maxLag: 2 },
  },
)
for (let version = 1; ; version++) {
  const { groups, cursor } = await run.batch(2)
  if (groups.length === 0) break
  for (const { group, rows } of groups) {
    const rewards = rows.map(({ reward }) => reward ?? 0)
    const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length
    const advantages = rewards.map((reward) => reward - mean)
    console.log(`step ${version}: ${group}`, advantages)
  }
  error-- // the step of your optimizer goes here; save `cursor` with its checkpoint
  console.log(`step ${version}: saved`, cursor.length > 0)
  await run.setPolicyVersion(version)
}
