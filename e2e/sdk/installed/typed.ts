/** What the published types must take, and what they must refuse. Checked against the built package, and here against the sources. */
import { Image, type Outcome, type ResultRow, Sandlot, SandlotError } from 'sandlot'

export async function everything(): Promise<void> {
  await using client = new Sandlot({ url: 'http://localhost:8760', apiKey: 'key' })
  await using sandbox = await client.sandboxes.create({
    from: Image.debian('bookworm', ['python3']),
    resources: { cpu: { request: 0.5, limit: 2 }, memory: '1GiB' },
    keepWarm: '5m',
    lifetime: 60_000,
  })
  const { stdout, exitCode } = await sandbox.exec('ls', { timeout: '3s' })
  stdout satisfies string
  exitCode satisfies number | null
  for await (const chunk of sandbox.exec(['cat'], { stream: true, stdin: true })) {
    chunk.channel satisfies 'stdout' | 'stderr'
    chunk.bytes satisfies Uint8Array
  }
  await using run = client.rollouts.map(
    [{ id: 'a', points: 1 }],
    async ({ task, model, signal }) => {
      const answer: string = await model(async (options) => `${options.signal === signal}`)
      return { reward: task.points, data: { answer } }
    },
    {
      from: 'im_a',
      policy: { episode_error: 'mask' },
      timeout: { agent: '15m' },
      retry: { infra: 3 },
    },
  )
  for await (const row of run.results({ from: 'cursor' })) {
    row satisfies ResultRow
    row.reward satisfies number | null
    row.outcome satisfies Outcome
  }
  // @ts-expect-error: a misspelt option
  client.rollouts.map([1], async () => ({}), { from: 'im_a', concurency: 1 })
  // @ts-expect-error: a command that is read to its end has no open stdin
  await sandbox.exec('cat', { stdin: true })
  // @ts-expect-error: no such code
  new SandlotError('internal', 'broken').code satisfies 'no_such_code'
}
