/** The programs of `examples/` as their readers run them: the very files, each a process of its own, with a daemon to join. */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { story } from './harness/story.ts'

const examples = fileURLToPath(new URL('../examples', import.meta.url))

/** For Node.js: a Ctrl-C as soon as this is printed, whoever reads it late. */
function interruptedAt(start: string): readonly string[] {
  const program = `const write = process.stdout.write.bind(process.stdout)
process.stdout.write = (text, ...more) => {
  const written = write(text, ...more)
  if (String(text).startsWith(${JSON.stringify(start)})) process.kill(process.pid, 'SIGINT')
  return written
}`
  return ['--import', `data:text/javascript,${encodeURIComponent(program)}`]
}

await story('the examples', { pool: 2 }, (given) => {
  let folder = ''
  beforeAll(async () => {
    folder = await mkdtemp('/var/tmp/sandlot-e2e-examples-')
  })
  afterAll(async () => await rm(folder, { recursive: true, force: true }))

  const start = (
    name: string,
    argv: readonly string[],
  ): ChildProcessByStdio<null, Readable, null> => {
    const { runDirectory } = given.daemon
    return spawn(process.execPath, [...argv, join(examples, name)], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, SANDLOT_RUN_DIRECTORY: runDirectory, TMPDIR: folder },
    })
  }

  /** All that it prints. */
  const linesOf = async (name: string, argv: readonly string[] = []) => {
    const child = start(name, argv)
    const closed = once(child, 'close')
    const lines: string[] = []
    createInterface(child.stdout).on('line', (line) => lines.push(line))
    const [code] = (await closed) as [number | null]
    return { lines, code }
  }

  // episode.ts is played by containers in function-episodes.test.ts.
  test('there is none that is not run', async () => {
    expect((await readdir(examples)).sort()).toEqual([
      ...[
        'episode.ts',
        'functions.ts',
        'programs.ts',
        'quickstart.ts',
        'resume.ts',
        'reward.ts',
        'sandbox.ts',
        'trainer.ts',
      ],
    ])
  })

  test('quickstart.ts', async () => {
    const { lines, code } = await linesOf('quickstart.ts')
    expect([...lines].sort()).toEqual(['double graded 1', 'shout graded 0'])
    expect(code).toBe(0)
  })

  test('sandbox.ts', async () => {
    const { lines, code } = await linesOf('sandbox.ts')
    expect(lines).toEqual([
      ...['line 0', 'line 1', 'line 2', 'exit code 0', 'said to its stdin'],
      "{ timedOut: true, stdout: 'so far\\n' }",
      'for i in range(3): print("line", i, flush=True)',
    ])
    expect(code).toBe(0)
    expect(await readdir(folder)).toEqual([])
  })

  test('functions.ts, which calls reward.ts', async () => {
    const { lines, code } = await linesOf('functions.ts')
    expect(lines).toEqual([
      ...['once 1', '0 0', '1 1', '2 0'],
      "[ [ '41', 0 ], [ '42', 1 ], [ '43', 0 ] ]",
    ])
    expect(code).toBe(0)
  })

  test('programs.ts', async () => {
    const { lines, code } = await linesOf('programs.ts')
    expect(lines.map((line) => line.split(' {')[0]).sort()).toEqual([
      ...['easy graded 1', 'hard graded 0'],
    ])
    expect(code).toBe(0)
  })

  test('trainer.ts', async () => {
    const { lines, code } = await linesOf('trainer.ts')
    const groups = lines.flatMap((line) => /^step \d: (sum-\d) \[/.exec(line)?.[1] ?? [])
    expect(groups.sort()).toEqual(['sum-0', 'sum-1', 'sum-2', 'sum-3', 'sum-4', 'sum-5'])
    expect(lines.filter((line) => line.endsWith('saved true'))).toHaveLength(3)
    expect(code).toBe(0)
  })

  test('resume.ts goes on where Ctrl-C ended it', async () => {
    const first = await linesOf('resume.ts', interruptedAt('10:'))
    expect(first.code).toBe(null)
    const checkpoint = join(folder, 'sandlot-resume.json')
    const { handled } = JSON.parse(await readFile(checkpoint, 'utf8'))
    const second = await linesOf('resume.ts')
    expect(second.code).toBe(0)
    const rows = second.lines.filter((line) => /^\d+: /.test(line))
    expect(rows.map((line) => Number.parseInt(line, 10))).toEqual(
      Array.from({ length: 50 - handled }, (_, n) => handled + n + 1),
    )
    const all = [...first.lines, ...rows]
    const keys = all.map((line) => /^\d+: (square-\d+) graded 1$/.exec(line)?.[1])
    expect(keys).not.toContain(undefined)
    expect(new Set(keys).size).toBe(50)
  })
})
