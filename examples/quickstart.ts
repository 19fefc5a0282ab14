import { Image, pythonFunction, Sandlot } from 'sandlot'

const tasks = [
  { id: 'double', prompt: 'Write double(n).', test: 'def check(f): assert f(21) == 42' },
  { id: 'shout', prompt: 'Write shout(text).', test: 'def check(f): assert f("hi") == "HI"' },
]
const policy = async (_prompt: string) => 'def double(n): return n + n\n' // your model goes here
await using client = await Sandlot.local()
const python = Image.debian('bookworm', ['python3']).workdir('/work')
const from = await client.prepare({ from: python, onLog: console.error }) // once, for all episodes
await using run = client.rollouts.map(
  tasks,
  async ({ sandbox, task, model }) => {
    const code = await model(() => policy(task.prompt))
    await sandbox.files.write('/work/solution.py', code)
  },
  {
    from,
    grade: pythonFunction({
      candidate: '/work/solution.py',
      test: ({ id, test }) => ({ entryPoint: id, test }),
    }),
  },
)
for await (const { key, outcome, reward } of run) console.log(key, outcome, reward)
