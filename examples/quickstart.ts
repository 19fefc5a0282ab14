import { Image, Sandlot } from 'sandlot'

await using client = await Sandlot.local()

const tasks = [
  { id: 'add', prompt: 'Print 2 + 2.', answer: '4' },
  { id: 'shout', prompt: 'Print hello in capitals.', answer: 'HELLO' },
]

await using run = client.rollouts.map(
  tasks,
  async ({ sandbox, task }) => {
    const program = task.id === 'add' ? 'print(2 + 2)' : 'print("hello".upper())' // your policy goes here
    await sandbox.files.write('/work/main.py', program)
    return { data: { program } }
  },
  {
    from: Image.debian('bookworm', ['python3']),
    concurrency: 2,
    timeout: { agent: '1m' },
    grade: {
      run: async ({ sandbox, task }) => {
        const { stdout } = await sandbox.exec(['python3', '/work/main.py'])
        return stdout.trim() === task.answer ? 1 : 0
      },
    },
  },
)
for await (const row of run) console.log(row.key, row.outcome, row.reward)
