import { readFile } from 'node:fs/promises'
import { pythonFunction, type Sandbox } from 'sandlot'
import { expect, test } from 'vitest'
import { story } from './harness/story.ts'

const TEST = { entryPoint: 'f', test: 'def check(f):\n    assert set(f(1)) == {2}\n' }

/** A set of these is quadratic to build: all have the same hash. */
const ENDLESS = 'def f(n): return [(2**61 - 1) * i for i in range(100000)]\n'

/** Tries to take all memory of the sandbox while it is graded: by children, by files without a name, by its own. */
const GREEDY = `
import os
def f(n):
    for _ in range(6):
        if os.fork() == 0:
            held = bytearray(400 << 20)
            while True: held[0] += 1
    return n + 1
`
const HOARDING = `
import os
def f(n):
    files = []
    while True:
        files.append(os.memfd_create('x'))
        for _ in range(256): os.write(files[-1], b'x' * (1 << 20))
`

/** Says that it has begun, and is ready once it was frozen and goes on. */
const FROZEN = `
import os, time
open('/tmp/begun', 'w').close()
while not os.path.exists('/tmp/thawed'): time.sleep(0.02)
def f(n): return [n + 1]
`

/** Stops all other Pythons for longer than the candidate has, as a machine does that is frozen. Prints how many they are. */
const FREEZE = `
import os, signal, time
def others():
    for pid in map(int, filter(str.isdigit, os.listdir('/proc'))):
        with open(f'/proc/{pid}/cmdline', 'rb') as file:
            if pid != os.getpid() and b'/grader/' in file.read(): yield pid
while not os.path.exists('/tmp/begun'): time.sleep(0.02)
pids = list(others())
for pid in pids: os.kill(pid, signal.SIGSTOP)
time.sleep(9)
open('/tmp/thawed', 'w').close()
for pid in pids: os.kill(pid, signal.SIGCONT)
print(len(pids))
`

await story('the grader of a Python function', { pool: 2 }, (given) => {
  test('a candidate whose values are endless to compare is wrong, not a fault of the grader', async () => {
    await using run = given.client.rollouts.map(
      [{ id: 'endless' }],
      async ({ sandbox }) => {
        await sandbox.files.write('/work/solution.py', ENDLESS)
      },
      {
        from: given.image,
        grade: pythonFunction({
          candidate: '/work/solution.py',
          timeoutSeconds: 2,
          test: () => TEST,
        }),
      },
    )
    expect(await run.wait()).toMatchObject([{ outcome: 'graded', reward: 0 }])
  })

  test.each([
    ['children', GREEDY],
    ['files without a name', HOARDING],
    [
      'its own memory',
      'def f(n):\n    held = []\n    while True: held.append(bytearray(16 << 20))\n',
    ],
  ])(
    'a candidate that takes all memory by %s is wrong, and its sandbox lives',
    async (_, program) => {
      await using run = given.client.rollouts.map(
        [{ id: 'greedy' }],
        async ({ sandbox }) => {
          await sandbox.files.write('/work/solution.py', program)
        },
        {
          from: given.image,
          resources: { memory: '256MiB' },
          grade: pythonFunction({
            candidate: '/work/solution.py',
            timeoutSeconds: 5,
            test: () => TEST,
          }),
        },
      )
      expect(await run.wait()).toMatchObject([{ outcome: 'graded', reward: 0 }])
    },
  )

  test('a machine that stands still is not the candidate’s slowness', async () => {
    await using sandbox = await given.client.sandboxes.create({ from: given.image })
    const grading = gradeIn(sandbox, FROZEN, 6)
    // The grader, its judge and the candidate.
    expect(await sandbox.exec(['python3', '-c', FREEZE])).toMatchObject({ stdout: '3\n' })
    expect(await grading).toBe('{"reward": 1}\n')
  })

  test('what the tests print is no verdict', async () => {
    await using sandbox = await given.client.sandboxes.create({ from: given.image })
    const test = 'def check(f):\n    print(f(1))\n    print({"reward": 0})\n'
    expect(await gradeIn(sandbox, 'def f(n): return n\n', 30, test)).toBe('{"reward": 1}\n')
  })
})

async function gradeIn(sandbox: Sandbox, candidate: string, timeoutS: number, test = TEST.test) {
  const source = (name: string) =>
    readFile(new URL(`../packages/sdk/src/graders/python-${name}.py`, import.meta.url))
  const spec = { ...TEST, test, prelude: '', timeoutS, memoryBytes: 512 * 1024 * 1024 }
  const files = {
    'parent.py': await source('parent'),
    'child.py': await source('child'),
    'candidate.py': candidate,
    'spec.json': JSON.stringify({
      ...spec,
      candidate: '/grader/candidate.py',
      child: '/grader/child.py',
    }),
  }
  for (const [name, content] of Object.entries(files)) {
    await sandbox.files.write(`/grader/${name}`, content)
  }
  const command = ['python3', '-I', '-S', '/grader/parent.py', '/grader/spec.json']
  const { stdout, stderr } = await sandbox.exec(command)
  return stdout || stderr
}
