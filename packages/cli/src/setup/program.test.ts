import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryDirectory } from '@sandlot/testkit'
import { afterEach, expect, test, vi } from 'vitest'
import { isAlive } from '../testing/is-alive.ts'
import { findProgram, runProgram } from './program.ts'

const SOON = { timeoutMs: 30_000 }

afterEach(() => void vi.useRealTimers())

/** From here on time passes by `vi.advanceTimersByTime` alone: programs have as much of it as they need. */
function holdTime() {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
}

function shell(script: string, options: Partial<Parameters<typeof runProgram>[2]> = {}) {
  return runProgram('/bin/sh', ['-c', script], { ...SOON, ...options })
}

test('both streams come line by line, and together', async () => {
  const lines: string[] = []
  const end = await shell('echo one; echo two >&2; printf three', {
    onLine: (line) => lines.push(line),
  })
  expect(end).toMatchObject({ ok: true, exitCode: 0 })
  expect(lines.sort()).toEqual(['one', 'three', 'two'])
  expect(end.output.split('\n').sort()).toEqual(['', 'one', 'three', 'two'])
})

test('a program that fails is a result', async () => {
  expect(await shell('echo why >&2; exit 3')).toEqual({ ok: false, exitCode: 3, output: 'why\n' })
})

test('one that is not there is a result that says so', async () => {
  const end = await runProgram('/no/such/program', [], SOON)
  expect(end).toMatchObject({ ok: false, exitCode: undefined })
  expect(end.output).toContain('/no/such/program')
})

test('only the end of much output is kept', async () => {
  const { output } = await shell('i=0; while [ $i -lt 20000 ]; do echo "line $i"; i=$((i+1)); done')
  expect(output.length).toBeLessThanOrEqual(64 * 1024)
  expect(output.endsWith('line 19999\n')).toBe(true)
})

test('it gets the given variables and a working directory', async () => {
  await using directory = await temporaryDirectory()
  const { output } = await shell('echo "$GIVEN $PWD"', {
    cwd: directory.path,
    env: { GIVEN: 'yes' },
  })
  expect(output).toBe(`yes ${directory.path}\n`)
})

test('one that is late ends with all that it started', async () => {
  const pids: number[] = []
  holdTime()
  const end = await shell('sleep 1000 & echo $!; wait', {
    timeoutMs: 200,
    onLine: (line) => {
      pids.push(Number(line))
      vi.advanceTimersByTime(200)
    },
  })
  vi.useRealTimers()
  expect(end.ok).toBe(false)
  expect(end.output).toContain('ended after')
  await vi.waitFor(() => expect(pids.map(isAlive)).toEqual([false]), { timeout: 20_000 })
})

test('an abort ends it with all that it started, and throws its reason', async () => {
  const controller = new AbortController()
  const pids: number[] = []
  const reason = new Error('enough')
  const running = shell('sleep 1000 & echo $!; wait', {
    signal: controller.signal,
    onLine: (line) => {
      pids.push(Number(line))
      controller.abort(reason)
    },
  })
  await expect(running).rejects.toBe(reason)
  await vi.waitFor(() => expect(pids.map(isAlive)).toEqual([false]), { timeout: 20_000 })
})

test('it is told to end as was asked, and killed when it does not', async () => {
  const controller = new AbortController()
  const lines: string[] = []
  holdTime()
  const running = shell(
    'trap "echo told" INT; echo ready; while :; do sleep 1000 & wait $!; done',
    {
      signal: controller.signal,
      endBy: { signal: 'SIGINT', graceMs: 200 },
      onLine: (line) => {
        lines.push(line)
        if (line === 'ready') controller.abort(new Error('enough'))
        else vi.advanceTimersByTime(200)
      },
    },
  )
  await expect(running).rejects.toThrow('enough')
  expect(lines).toEqual(['ready', 'told'])
})

test('nothing is started when it is aborted already', async () => {
  await expect(shell('echo no', { signal: AbortSignal.abort(new Error('no')) })).rejects.toThrow(
    'no',
  )
})

test('a program is the first executable of its name', async () => {
  await using directory = await temporaryDirectory()
  await writeFile(join(directory.path, 'sh'), 'not executable')
  expect(await findProgram('sh', `:${directory.path}:/nowhere:/bin`)).toBe('/bin/sh')
  expect(await findProgram('no-such-program', '/bin')).toBeUndefined()
})
