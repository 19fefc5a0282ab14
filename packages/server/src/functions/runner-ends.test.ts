import { type Engine, EngineError } from '@sandlot/engine'
import { type ExecHandle, type Guest, GuestError, GuestLost } from '@sandlot/runtime'
import { expect, test } from 'vitest'
import type { ContainerEnd, ContainerInput } from './container.ts'
import { Runner } from './runner.ts'
import { lostError } from './tries.ts'

const LOST: ContainerEnd = { kind: 'infra', error: lostError('the container was lost') }

/** A runner whose process says what a test wants, with files and contents that do what it wants. */
function runnerWith(files: { readonly guest?: object; readonly blobs?: object } = {}) {
  const said: string[] = []
  let wake = () => {}
  let over = false
  async function* output() {
    while (!over || said.length > 0) {
      const text = said.shift()
      if (text !== undefined) yield { channel: 'stdout', bytes: Buffer.from(text), offset: 0 }
      else
        await new Promise<void>((resolve) => {
          wake = resolve
        })
    }
  }
  const handle = {
    ...{ exec: 'ex_1', started: Promise.resolve({ pid: 1 }), result: new Promise(() => {}) },
    stdin: { write: async () => true, end() {} },
    output: output(),
    detach() {},
  } as unknown as ExecHandle
  const { guest = {}, blobs = {} } = files
  const runner = new Runner({
    ...{ handle, secret: 'SECRET', label: 'f.ts' },
    files: { guest: { files: guest } as unknown as Guest, blobs: blobs as Engine['blobs'] },
    ended: async () => LOST,
  })
  return {
    runner,
    say(text: string) {
      said.push(text)
      wake()
    },
    end() {
      over = true
      wake()
    },
  }
}

const INPUT: ContainerInput = {
  ...{ id: '1', json: '5', blob: null, attempt: 1, outputPin: 'out/1' },
  onLog() {},
}
const LONG: ContainerInput = { ...INPUT, json: null, blob: 'sha256:0' }
const VALUE = 'SECRET{"k":"value","id":"1","json":null,"file":"/.sandlot/function/out-1"}\n'

const there = { open: async () => ({ body: Buffer.from('5') }) }
const nothing = async () => {}

test('a frame that is broken ends all that runs, and nothing more is taken', async () => {
  const { runner, say } = runnerWith()
  const running = runner.run(INPUT)
  say('SECRET{"k":"value","id":"1","js\nnoise\n')
  const end = { kind: 'error', error: { code: 'function_exited' } }
  expect(await running).toMatchObject(end)
  await runner.gone
  expect(await runner.run(INPUT)).toMatchObject(end)
})

test.each([
  [
    'its content can not be read',
    { open: () => Promise.reject(new EngineError('storage_failed', 'no')) },
    {},
  ],
  [
    'the sandbox does not answer in time',
    there,
    { write: () => Promise.reject(new Error('it took too long')) },
  ],
])(
  'an input that was not brought by no fault of the function is lost: %s',
  async (_, blobs, guest) => {
    const { runner } = runnerWith({ blobs, guest })
    expect(await runner.run(LONG)).toMatchObject({
      kind: 'infra',
      error: { code: 'function_lost', message: expect.stringContaining('could not be brought') },
    })
  },
)

test('an input for which the function left no room is its own failure', async () => {
  const guest = { write: () => Promise.reject(new GuestError('no_space', 'the disk is full')) }
  const { runner } = runnerWith({ blobs: there, guest })
  expect(await runner.run(LONG)).toMatchObject({ kind: 'error', error: { code: 'no_space' } })
})

test('a value that could not be kept by no fault of the function is lost, and no error of it', async () => {
  const guest = { read: async () => ({ content: Buffer.from('5') }), remove: nothing }
  const put = () => Promise.reject(new EngineError('disk_full', 'the disk is full'))
  const { runner, say } = runnerWith({ guest, blobs: { put } })
  const running = runner.run(INPUT)
  say(VALUE)
  expect(await running).toMatchObject({ kind: 'infra', error: { code: 'function_lost' } })
})

test('a value that is too long is an error of the function', async () => {
  const guest = { read: async () => ({ content: Buffer.from('5') }), remove: nothing }
  const put = () => Promise.reject(new EngineError('too_large', 'it has 70 MiB'))
  const { runner, say } = runnerWith({ guest, blobs: { put } })
  const running = runner.run(INPUT)
  say(VALUE)
  expect(await running).toMatchObject({ kind: 'error', error: { code: 'too_large' } })
})

test('a value whose container is lost while it is read ends as the container did', async () => {
  const read = () => Promise.reject(new GuestLost('exited', 'it is gone'))
  const { runner, say, end } = runnerWith({ guest: { read } })
  const running = runner.run(INPUT)
  say(VALUE)
  end()
  expect(await running).toEqual(LOST)
})

test('what a function throws is bounded, whatever its runner says', async () => {
  const { runner, say } = runnerWith()
  const running = runner.run(INPUT)
  const error = { name: 'E'.repeat(500), message: 'm'.repeat(50_000), stack: 's'.repeat(90_000) }
  say(`SECRET${JSON.stringify({ k: 'threw', id: '1', error })}\n`)
  const end = await running
  if (end.kind !== 'error') throw new Error('it is no error')
  expect(end.error.name.length).toBe(200)
  expect(end.error.message.length).toBe(4_096)
  expect(end.error.stack?.length).toBe(16_384)
})

test('a long value that comes when nobody waits any more takes the name of no other', async () => {
  const pinned: string[] = []
  const begun = Promise.withResolvers<void>()
  const kept = Promise.withResolvers<void>()
  const told = Promise.withResolvers<void>()
  const blobs = {
    put: async () => {
      begun.resolve()
      await kept.promise
      return { digest: 'sha256:0', sizeBytes: 1 }
    },
    pin: async (name: string) => void pinned.push(name),
  }
  const guest = {
    read: async () => ({ content: Buffer.from('5') }),
    remove: async () => told.resolve(),
  }
  for (const isCancelled of [true, false]) {
    const { runner, say, end } = runnerWith({ guest, blobs })
    const running = runner.run(INPUT)
    say(VALUE)
    await begun.promise
    if (isCancelled) runner.cancel('1')
    kept.resolve()
    if (!isCancelled) expect(await running).toMatchObject({ kind: 'value', blob: 'sha256:0' })
    await told.promise
    expect(pinned).toEqual(isCancelled ? [] : ['out/1'])
    end()
  }
})
