import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'

const COMMAND = fileURLToPath(new URL('../testing/interrupted-command.ts', import.meta.url))
const LONG_MS = 1e8

const started: ChildProcess[] = []
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL')
})

/** Starts it, and calls `onLine` for each line of its output. */
async function run(
  options: { readonly cleanUpMs: number; readonly graceMs: number },
  onLine: (line: string, child: ChildProcess) => void,
): Promise<{ code: number | null; lines: string[]; stderr: string }> {
  const argv = [COMMAND, String(options.cleanUpMs), String(options.graceMs)]
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', ...argv])
  started.push(child)
  const lines: string[] = []
  let stderr = ''
  child.stderr.on('data', (chunk) => {
    stderr += chunk
  })
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line)
    onLine(line, child)
  })
  const [code] = await once(child, 'close')
  return { code, lines, stderr }
}

test.each(['SIGINT', 'SIGTERM'] as const)(
  '%s aborts what waits, and lets it clean up',
  async (signal) => {
    const end = await run({ cleanUpMs: 0, graceMs: LONG_MS }, (line, child) => {
      if (line === 'ready') child.kill(signal)
    })
    expect(end).toEqual({ code: 0, lines: ['ready', 'Interrupted', 'clean'], stderr: '' })
  },
)

test('a second signal ends the process at once', async () => {
  const end = await run({ cleanUpMs: LONG_MS, graceMs: LONG_MS }, (line, child) => {
    if (line === 'ready' || line === 'Interrupted') child.kill('SIGINT')
  })
  expect(end).toEqual({ code: 130, lines: ['ready', 'Interrupted'], stderr: '' })
})

test('cleaning up that takes too long is left undone', async () => {
  const end = await run({ cleanUpMs: LONG_MS, graceMs: 100 }, (line, child) => {
    if (line === 'ready') child.kill('SIGTERM')
  })
  expect(end).toMatchObject({ code: 130, lines: ['ready', 'Interrupted'] })
  expect(end.stderr).toContain('not cleaned up after 0.1 s')
})
