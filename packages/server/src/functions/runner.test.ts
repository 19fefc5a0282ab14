import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import { runnerFiles } from './runner-files.ts'
import { type RunnerFrame, type RunnerRequest, readLines } from './runner-wire.ts'

/** The runner of a container as a process of this machine. */
async function startRunner(module: string, name = 'default') {
  const directory = await mkdtemp(join(tmpdir(), 'sandlot-runner-'))
  for (const { path, content } of await runnerFiles()) {
    await writeFile(join(directory, basename(path)), content)
  }
  await writeFile(join(directory, 'module.mjs'), module)
  const args = [join(directory, 'main.mjs'), name, 'f.ts', '100', directory]
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'pipe'] })
  child.stdin.write(`${JSON.stringify({ k: 'begin', secret: 'SECRET' })}\n`)
  // Once all that it said has come, too.
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve))
  const frames: RunnerFrame[] = []
  const texts: string[] = []
  let wake = () => {}
  const lines = readLines('SECRET', {
    frame: (frame) => {
      if (frame) frames.push(frame)
      wake()
    },
    text: (text) => texts.push(text),
  })
  child.stdout.on('data', (bytes) => lines.push(bytes))
  const errors: string[] = []
  child.stderr.on('data', (bytes) => errors.push(String(bytes)))
  return {
    ...{ directory, frames, texts, exited, errors },
    send: (request: RunnerRequest) => child.stdin.write(`${JSON.stringify(request)}\n`),
    /** Once a frame fits. */
    frame: async (fits: (frame: RunnerFrame) => boolean): Promise<RunnerFrame> => {
      for (;;) {
        const found = frames.find(fits)
        if (found) return found
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    },
    [Symbol.asyncDispose]: async () => {
      child.stdin.end()
      child.kill('SIGKILL')
      await exited
      await rm(directory, { recursive: true, force: true })
    },
  }
}

const run = (id: string, json: string | null): RunnerRequest => ({ k: 'run', id, json, attempt: 1 })
const endOf = (id: string) => (frame: RunnerFrame) =>
  (frame.k === 'value' || frame.k === 'threw') && frame.id === id

test('it runs the handler for each input, side by side, and prints for whom it runs', async () => {
  await using runner = await startRunner(`
    export default async (n, { attempt }) => {
      const { log } = console
      log('begins ' + n)
      await new Promise((resolve) => setTimeout(resolve, n))
      process.stderr.write('ends ' + n)
      return { n, attempt }
    }`)
  await runner.frame(({ k }) => k === 'ready')
  runner.send(run('slow', '40'))
  runner.send(run('fast', '1'))
  expect(await runner.frame(endOf('slow'))).toMatchObject({ json: '{"n":40,"attempt":1}' })
  expect(await runner.frame(endOf('fast'))).toMatchObject({ json: '{"n":1,"attempt":1}' })
  const logs = runner.frames.filter((frame) => frame.k === 'log')
  expect(logs.filter(({ id }) => id === 'fast')).toMatchObject([
    { channel: 'stdout', text: 'begins 1' },
    { channel: 'stderr', text: 'ends 1' },
  ])
})

test('what it throws comes with its own frames, and no value is one', async () => {
  await using runner = await startRunner(`
    function deep() { throw new RangeError('no good') }
    export default (x) => { if (x) deep() }`)
  runner.send(run('1', 'true'))
  runner.send(run('2', 'false'))
  const threw = await runner.frame(endOf('1'))
  expect(threw).toMatchObject({ error: { name: 'RangeError', message: 'no good' } })
  const stack = 'error' in threw ? threw.error.stack : ''
  expect(stack).toContain('at deep')
  expect(stack).not.toContain('main.mjs')
  expect(await runner.frame(endOf('2'))).toMatchObject({ k: 'value', json: null })
})

test('a value that is no plain data is an error, and a long one is a file', async () => {
  await using runner = await startRunner(
    `export default (x) => x ? 'y'.repeat(x) : { at: new Date() }`,
  )
  runner.send(run('1', '0'))
  runner.send(run('2', '500'))
  expect(await runner.frame(endOf('1'))).toMatchObject({
    error: { message: expect.stringContaining('what f.ts returned.at is of class Date') },
  })
  expect(await runner.frame(endOf('2'))).toMatchObject({ file: `${runner.directory}/out-2` })
})

test.each([
  ['throw new Error("at once")', 'at once'],
  ['export const other = () => 1', 'is not there: its functions are other'],
  ['export default 5', 'is of type number: it has none'],
  ['import "nowhere-to-be-found"', 'nowhere-to-be-found'],
])('a module that can’t be loaded says why: %s', async (module, message) => {
  await using runner = await startRunner(module)
  expect(await runner.frame(({ k }) => k === 'broken')).toMatchObject({
    error: { message: expect.stringContaining(message) },
  })
})

test('a process that ends in the middle has said what it printed last', async () => {
  await using runner = await startRunner(
    `export default () => { process.stdout.write('going'); process.exit(3) }`,
  )
  runner.send(run('1', '0'))
  expect(await runner.exited).toBe(3)
  expect(await runner.frame(({ k }) => k === 'log')).toMatchObject({ id: '1', text: 'going' })
})

test.each([
  'process.stdin.destroy()',
  'stdin.pause()',
  'stdin.removeAllListeners()',
  'createInterface({ input: process.stdin }).close()',
  'process.stdout.destroy()',
  'process.stdout.end()',
])('what a function does to its own streams is no matter: %s', async (does) => {
  await using runner = await startRunner(`
    import { stdin } from 'node:process'
    import { createInterface } from 'node:readline'
    export default (n) => { ${does}; return n }`)
  for (const id of ['1', '2']) {
    runner.send(run(id, id))
    expect(await runner.frame(endOf(id))).toMatchObject({ k: 'value', json: id })
  }
})

test('the stdin of a function has nothing in it', async () => {
  await using runner = await startRunner(`
    export default async () => (await Array.fromAsync(process.stdin)).length`)
  runner.send(run('1', null))
  expect(await runner.frame(endOf('1'))).toMatchObject({ k: 'value', json: '0' })
})

test.each([
  ['stdin', 'closeSync(0)', 'at load', 'export default () => 1'],
  ['stdin', '', 'when it returns', 'export default () => closeSync(0)'],
  ['stdin', '', 'while it runs', 'export default () => (closeSync(0), new Promise(() => {}))'],
  ['stdout', '', 'while it runs', 'export default () => (closeSync(1), new Promise(() => {}))'],
])('one that closes its %s%s %s ends at once, and says why', async (which, first, _, then) => {
  await using runner = await startRunner(`import { closeSync } from 'node:fs'; ${first}; ${then}`)
  if (first === '') runner.send(run('1', '1'))
  expect(await runner.exited).toBe(1)
  expect(runner.errors.join('')).toContain(`f.ts closed its ${which}`)
})

test('the secret of its frames stands neither in its arguments nor in its environment', async () => {
  await using runner = await startRunner(`
    import { readFileSync } from 'node:fs'
    export default () => ['cmdline', 'environ'].map((name) => readFileSync('/proc/self/' + name, 'utf8'))`)
  await runner.frame(({ k }) => k === 'ready')
  runner.send(run('1', null))
  const frame = await runner.frame(endOf('1'))
  const shown = frame.k === 'value' ? await readFile(frame.file ?? '', 'utf8') : ''
  expect(shown).toContain('main.mjs')
  expect(shown).not.toContain('SECRET')
})

test('what comes before its module is loaded is taken when it is', async () => {
  await using runner = await startRunner(`
    await new Promise((resolve) => setTimeout(resolve, 20))
    export default (n) => n + 1`)
  runner.send(run('1', '1'))
  runner.send(run('2', '2'))
  expect(await runner.frame(endOf('1'))).toMatchObject({ json: '2' })
  expect(await runner.frame(endOf('2'))).toMatchObject({ json: '3' })
})
