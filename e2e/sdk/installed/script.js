/** What a user of the npm package may write, on any runtime: plain JavaScript, no `await using`. Prints one line of JSON. */
import { Image, Sandlot, SandlotError } from 'sandlot'

const [archive] = process.argv.slice(2)
const client = new Sandlot()
const { id: from } = await client.images.build(Image.tar(archive))
const sandbox = await client.sandboxes.create({ from })
await sandbox.files.write('/f', 'text')
const buffered = await sandbox.exec(['cat', '/f'])
const stream = sandbox.exec(['cat'], { stream: true, stdin: true })
await stream.write('streamed')
await stream.closeStdin()
let streamed = ''
for await (const { text } of stream) streamed += text
const refused = await sandbox.files.read('/none').catch((error) => error)
await sandbox.stop()

const run = client.rollouts.map(
  ['a', 'b', 'c'].map((id) => ({ id })),
  async ({ sandbox, task }) => void (await sandbox.files.write('/out', task.id)),
  {
    from,
    grade: {
      run: async ({ episode, task }) =>
        (await episode.files.readText('/out')) === task.id ? 1 : 0,
    },
  },
)
const rewards = {}
for await (const { key, reward } of run) rewards[key] = reward
const disposable = typeof run[Symbol.asyncDispose] === 'function'
const unauthorized = await new Sandlot({ apiKey: 'wrong' }).sandboxes
  .get('sb_aaaaaaaaaaaaaaaaaaaa')
  .catch((error) => error.code)
process.stdout.write(
  JSON.stringify({
    stdout: buffered.stdout,
    streamed,
    refused: refused instanceof SandlotError && refused.code,
    rewards,
    disposable,
    unauthorized,
  }),
)
// The client is not closed: a process that has nothing left to do ends.
