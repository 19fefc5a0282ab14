/** Steps that a client's function makes: one runs at a time, and what it left is kept as any other step. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { BuildStep } from '@sandlot/protocol'
import { type BuildBench, buildBench } from '@sandlot/testkit'
import { expect, test } from 'vitest'
import type { FunctionCall } from '../shared-builds.ts'
import type { SourceWait } from '../store.ts'

const ask: BuildStep = { kind: 'function', key: 'data', call: 0 }
const run: BuildStep = { kind: 'run', command: 'true' }

async function write(at: BuildBench, { sandbox }: FunctionCall, path: string): Promise<void> {
  const found = at.driver.machine.all().find(({ id }) => id === sandbox)
  await found?.guest.files.write('main', path, Buffer.from('data'))
}

/** Builds steps over a small base, with a function that writes a file of its name. */
async function build(at: BuildBench, steps: BuildStep[], wait: SourceWait = {}) {
  const calls: FunctionCall[] = []
  const onFunction = async (call: FunctionCall) => {
    calls.push(call)
    await write(at, call, `/${call.key}`)
  }
  const base = { kind: 'tar', blob: at.tar([{ path: 'etc/motd' }]) } as const
  const image = await at.store.build({ kind: 'built', base, steps }, { onFunction, ...wait })
  return { image, calls }
}

test('what a function leaves is a layer, and is found without it', async () => {
  await using at = await buildBench()
  const { image, calls } = await build(at, [ask, run])
  expect(calls).toEqual([{ key: 'data', call: 0, sandbox: expect.stringMatching(/^sb_/) }])
  expect((await at.layers(image)).flat()).toEqual([expect.stringMatching(/^data file .* data$/)])
  const again = await build(at, [{ ...ask, call: 7 }, run])
  expect(again).toEqual({ image, calls: [] })
  expect(at.driver.machine.size).toBe(0)
  await at.store.collect(0)
  expect(await readdir(join(at.directory, 'images'))).toEqual([])
})

const project = 'other'
const memory = { request: 2 ** 28, limit: 2 ** 28 }
test.each<[what: string, step: Partial<BuildStep>, wait: SourceWait]>([
  ['key', { key: 'data2' }, {}],
  ['network', { network: 'none' }, {}],
  ['resources', { resources: { memory } }, {}],
  ['project', {}, { project }],
])('one of another %s is another step', async (_what, step, wait) => {
  await using at = await buildBench()
  await build(at, [ask])
  expect((await build(at, [{ ...ask, ...step } as BuildStep], wait)).calls).toHaveLength(1)
  const asked = at.machines.map(({ network, client }) => ({ network, ...client }))
  expect(asked[0]).toMatchObject({ network: 'packages', project: '', resources: { pids: 256 } })
  expect(asked[1]).toMatchObject({
    network: 'network' in step ? 'none' : 'packages',
    project: wait.project ?? '',
    resources: { memory: 'resources' in step ? memory : { limit: 2 ** 30 } },
  })
})

test('whoever says that it has no project of its own is not believed', async () => {
  await using at = await buildBench()
  await build(at, [ask], { project })
  expect((await build(at, [{ ...ask, project } as BuildStep])).calls).toHaveLength(1)
})

test('many who ask have one run, and the same image', async () => {
  await using at = await buildBench()
  const all = await Promise.all(Array.from({ length: 5 }, () => build(at, [ask])))
  expect(all.flatMap(({ calls }) => calls)).toHaveLength(1)
  expect(new Set(all.map(({ image }) => image.id)).size).toBe(1)
})

test('one that fails is the failure of its own client; the next begins with nothing of it', async () => {
  await using at = await buildBench()
  const begun = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  const failing = async (call: FunctionCall) => {
    begun.resolve()
    await write(at, call, '/half-made')
    await asked.promise
    throw new Error('it broke')
  }
  const failed = build(at, [ask], { onFunction: failing })
  await begun.promise
  const next = build(at, [ask], { onLog: () => asked.resolve() })
  const [first, second] = await Promise.allSettled([failed, next])
  expect(first).toMatchObject({ status: 'rejected', reason: { message: 'it broke' } })
  if (second.status === 'rejected') throw second.reason
  expect((await at.layers(second.value.image)).flat()).toEqual([expect.stringMatching(/^data /)])
  expect(at.driver.machine.size).toBe(0)
})

test('where the last one fails the step does, and is not kept', async () => {
  await using at = await buildBench()
  const onFunction = async () => {
    throw new Error('it broke')
  }
  await expect(build(at, [ask], { onFunction })).rejects.toThrow('it broke')
  expect(at.driver.machine.size).toBe(0)
  expect(await readdir(join(at.directory, 'tmp'))).toEqual([])
  expect((await build(at, [ask])).calls).toHaveLength(1)
})

test('one whose client leaves ends, and the next has his turn', async () => {
  await using at = await buildBench()
  const leaver = new AbortController()
  const begun = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  const hanging = async (_call: FunctionCall, wait: { readonly signal: AbortSignal }) => {
    begun.resolve()
    await new Promise((_, fail) =>
      wait.signal.addEventListener('abort', () => fail(wait.signal.reason), { once: true }),
    )
  }
  const leaving = build(at, [ask], { onFunction: hanging, signal: leaver.signal })
  await begun.promise
  const staying = build(at, [ask], { onLog: () => asked.resolve() })
  await asked.promise
  leaver.abort(new Error('enough'))
  await expect(leaving).rejects.toThrow('enough')
  expect((await staying).calls).toHaveLength(1)
  const alone = new AbortController()
  const onFunction = async (...given: Parameters<typeof hanging>) => {
    queueMicrotask(() => alone.abort(new Error('enough')))
    await hanging(...given)
  }
  const last = build(at, [{ ...ask, key: 'b' } as BuildStep], { onFunction, signal: alone.signal })
  await expect(last).rejects.toThrow('enough')
  expect(at.driver.machine.size).toBe(0)
})

test('nobody who can run it is told so', async () => {
  await using at = await buildBench()
  const asked = build(at, [ask], { onFunction: undefined })
  await expect(asked).rejects.toMatchObject({
    code: 'image_build_failed',
    message: expect.stringContaining('Nobody who waits can run the function data'),
  })
})
