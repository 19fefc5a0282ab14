import { readFile, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import {
  findLeaks,
  gvisorPlaces,
  pythonImage,
  temporaryDirectory,
  whyNoGvisor,
} from '@sandlot/testkit'
import { describe, expect, test } from 'vitest'
import { detectCgroups } from '../cgroup/detect.ts'
import { type DriverHarness, readText, shell, specFor } from '../conformance/harness.ts'
import type { Layer } from '../driver.ts'
import { ErofsImageFile } from '../image/erofs/image-file.ts'
import { LayerTree } from '../image/layer-tree.ts'
import { GvisorDriver } from './driver.ts'
import { sandboxPaths } from './paths.ts'
import { sizesOf } from './sizing.ts'

const reason = await whyNoGvisor()
const MIB = 2 ** 20

async function setup(over: { runsc?: string; agent?: string; helper?: string } = {}) {
  const places = await gvisorPlaces()
  const options = { ...places.options, ...over }
  const { stateDirectory } = options
  const { layers } = await pythonImage()
  const harness = { layers } as unknown as DriverHarness
  const driver = new GvisorDriver(options)
  return {
    driver,
    layers,
    spec: (overSpec: Parameters<typeof specFor>[1] = {}) => specFor(harness, overSpec),
    paths: (hostId: string) => sandboxPaths(stateDirectory, hostId),
    cgroups: detectCgroups(basename(stateDirectory)),
    sandboxesLeft: async () =>
      (await findLeaks({ stateDirectory })).filter((line) => !line.includes('sandlot-helper')),
    [Symbol.asyncDispose]: async () => {
      await driver[Symbol.asyncDispose]()
      await places[Symbol.asyncDispose]()
    },
  }
}

describe.skipIf(reason !== '')(`sandboxes in gVisor${reason && `: ${reason}`}`, () => {
  test('an agent of another version is told before anything is started with it', async () => {
    await using directory = await temporaryDirectory()
    const agent = join(directory.path, 'agent')
    await writeFile(agent, 'an old sandlot-agent 0.0.0', { mode: 0o755 })
    await using each = await setup({ agent })
    const refusal = { code: 'unsupported', message: expect.stringContaining(agent) }
    await expect(each.driver.recover()).rejects.toMatchObject(refusal)
    await expect(each.driver.createBlank()).rejects.toMatchObject(refusal)
    await using none = await setup({ agent: join(directory.path, 'nothing') })
    await expect(none.driver.recover()).rejects.toMatchObject({ code: 'unsupported' })
    const helper = join(directory.path, 'nowhere')
    await using helpless = await setup({ helper })
    await expect(helpless.driver.recover()).rejects.toMatchObject({
      code: 'unsupported',
      message: expect.stringContaining(helper),
    })
    const findings = await each.driver.probe()
    expect(findings.find(({ name }) => name === 'guest agent')).toMatchObject({
      ok: false,
      found: expect.stringContaining('of another version'),
      mend: expect.stringContaining('./sandlot setup'),
    })
  })

  test('a layer that cannot be mounted fails the start, and leaves nothing', async () => {
    await using each = await setup()
    const { driver } = each
    const spec = each.spec({ layers: [{ digest: 'sha256:0', path: '/nowhere/layer.erofs' }] })
    await expect(driver.create(spec)).rejects.toMatchObject({
      code: 'create_failed',
      message: expect.stringContaining('/nowhere/layer.erofs'),
    })
    const blank = await driver.createBlank()
    await expect(driver.checkout(blank, spec)).rejects.toMatchObject({
      code: 'create_failed',
      message: expect.stringContaining('/nowhere/layer.erofs'),
    })
    expect(await each.sandboxesLeft()).toEqual([])
    await expect(driver.create(each.spec({ layers: [] }))).rejects.toMatchObject({
      hint: expect.stringContaining('1 to 128'),
    })
  })

  test.each(['cold', 'blank'])('of many layers the upper ones are seen (%s)', async (start) => {
    await using each = await setup()
    await using directory = await temporaryDirectory()
    const small = await Promise.all(
      Array.from({ length: 12 }, (_, n) =>
        smallLayer(join(directory.path, `${n}.erofs`), String(n)),
      ),
    )
    const spec = each.spec({ layers: [...each.layers, ...small] })
    const sandbox =
      start === 'cold'
        ? await each.driver.create(spec)
        : await each.driver.checkout(await each.driver.createBlank(), spec)
    expect(await readText(sandbox, 'main', '/who')).toBe('11')
    expect(await shell(sandbox, 'cat /only-0 /only-11')).toMatchObject({ stdout: '011' })
  })

  test('limits of the host’s cgroup are those of the sandbox, and a blank’s before', async () => {
    await using each = await setup()
    const limits = { memoryBytes: 64 * MIB, diskBytes: 16 * MIB, pidsMax: 200, cpus: 0.5 }
    const spec = each.spec({ limits })
    const blank = await each.driver.createBlank()
    const leaf = each.cgroups?.leaf(blank.hostId)
    expect((await leaf?.evidence())?.limitBytes).toBe(128 * MIB)
    const sandbox = await each.driver.checkout(blank, spec)
    expect((await leaf?.evidence())?.limitBytes).toBe(sizesOf(spec.limits).cgroupMemoryBytes)
    // Half a processor: a busy loop gets half of the time that it takes, which may be more than its second.
    const beganMs = performance.now()
    const before = await each.driver.usage(sandbox)
    await shell(sandbox, 'timeout 1 sh -c "while :; do :; done"')
    const after = await each.driver.usage(sandbox)
    const tookMs = performance.now() - beganMs
    expect(after.cpuMs - before.cpuMs).toBeLessThan(tookMs / 2 + 250)
  })

  test('a sandbox that stands still can be stopped', async () => {
    await using each = await setup()
    const sandbox = await each.driver.create(each.spec())
    const { sentryPid } = JSON.parse(await readFile(each.paths(sandbox.hostId).state, 'utf8'))
    process.kill(sentryPid, 'SIGSTOP')
    expect(await each.driver.stop(sandbox)).toMatchObject({ kind: 'stopped' })
  })

  test('one that dies while it is dressed says how', async () => {
    await using each = await setup()
    const blank = await each.driver.createBlank()
    const { sentryPid } = JSON.parse(await readFile(each.paths(blank.hostId).state, 'utf8'))
    process.kill(sentryPid, 'SIGKILL')
    await expect(each.driver.checkout(blank, each.spec())).rejects.toMatchObject({
      code: expect.stringMatching(/create_failed|sandbox_gone/),
    })
    expect(await blank.gone).toMatchObject({ kind: 'lost' })
  })

  test.each([
    ['is missing', undefined, '/nowhere/runsc'],
    ['fails', 'echo no luck >&2; exit 9', 'no luck'],
  ])('a runtime that %s says so', async (_, text, said) => {
    await using directory = await temporaryDirectory()
    const runsc = text === undefined ? '/nowhere/runsc' : await script(directory.path, text)
    await using each = await setup({ runsc })
    await expect(each.driver.createBlank()).rejects.toMatchObject({
      code: 'create_failed',
      message: expect.stringContaining(said),
    })
    expect(await each.sandboxesLeft()).toEqual([])
  })

  test('a runtime that hangs is ended by an abort', async () => {
    await using directory = await temporaryDirectory()
    await using each = await setup({ runsc: await script(directory.path, 'sleep 1000') })
    const signal = AbortSignal.timeout(200)
    await expect(each.driver.createBlank({ signal })).rejects.toThrow('timeout')
    expect(await each.sandboxesLeft()).toEqual([])
  })
})

async function smallLayer(path: string, name: string): Promise<Layer> {
  await using file = await ErofsImageFile.create(path, MIB)
  const tree = new LayerTree()
  const attributes = { mode: 0o644, uid: 0, gid: 0, mtimeSeconds: 0, mtimeNanoseconds: 0 }
  for (const each of ['who', `only-${name}`]) {
    const content = await file.appendContent(one(Buffer.from(name)))
    tree.put(each, { kind: 'file', ...attributes, ...content })
  }
  const { digest } = await file.finish(tree.root)
  return { digest, path }
}

async function* one(bytes: Uint8Array) {
  yield bytes
}

async function script(directory: string, text: string): Promise<string> {
  const path = join(directory, `runsc-${text.length}`)
  await writeFile(path, `#!/bin/sh\n${text}\n`, { mode: 0o755 })
  return path
}
