import { Image, Sandlot } from 'sandlot'

const tasks = [
  { id: 'easy', question: '3 + 4', answer: '7' },
  { id: 'hard', question: '12 * 12', answer: '144' },
]
// The harness of your agent goes here: it reads its task, and leaves what it comes to.
const agent = `
import json, os
task = json.load(open(os.environ["SANDLOT_TASK_FILE"]))
open("/answer", "w").write(str(eval(task["question"])) if "+" in task["question"] else "12")
`

await using client = await Sandlot.local()
const run = client.rollouts.program(tasks, {
  from: Image.debian('bookworm', ['python3']),
  onLog: console.error, // of the image, where it is built first
  command: ['python3', '/agent.py'],
  files: { '/agent.py': agent },
  timeout: { agent: '2m' },
  // What the task holds back from the program, its grader is brought.
  content: ({ question }) => ({ question }),
  each: ({ answer }) => ({ grade: { files: { '/tests/answer': answer } } }),
  grade: { run: '[ "$(cat /answer)" = "$(cat /tests/answer)" ]', clear: ['/tests'] },
})
await run.submitted // from here on the daemon needs nobody: this process could end
for await (const row of run) console.log(row.key, row.outcome, row.reward, row.data)
