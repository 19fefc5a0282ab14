import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import {
  gvisorPlaces,
  orphanSandboxes,
  pythonImage,
  temporaryDirectory,
  whyNoGvisor,
} from '@sandlot/testkit'
import { describe, expect, test } from 'vitest'
import { detectCgroups } from '../cgroup/detect.ts'
import { type DriverHarness, shell, specFor } from '../conformance/harness.ts'
import { SHELL } from '../conformance/shell-texts.ts'
import type { EndedSandbox, SandboxSpec } from '../driver.ts'
import { RUNTIME_LIMITS } from '../limits.ts'
import { GvisorDriver } from './driver.ts'
import type { GvisorOptions } from './options.ts'
import { newHostId, sandboxPaths } from './paths.ts'

const reason = await whyNoGvisor()

/** A driver over a state directory of its own; nothing may be left in the end. */
async function setup() {
  const places = await gvisorPlaces()
  const { options } = places
  const { layers } = await pythonImage()
  const harness = { layers } as unknown as DriverHarness
  const { stateDirectory } = options
  return {
    options,
    spec: (over: Partial<Omit<SandboxSpec, 'limits'>> = {}) => specFor(harness, over),
    paths: (hostId: string) => sandboxPaths(stateDirectory, hostId),
    leaf: (hostId: string) => leafOf(options, hostId),
    [Symbol.asyncDispose]: async () => {
      await places[Symbol.asyncDispose]()
    },
  }
}

describe.skipIf(reason !== '')(`recovery of sandboxes in gVisor${reason && `: ${reason}`}`, () => {
  test('what ended while no daemon was there has its fate, what is nobody’s is gone', async () => {
    await using each = await setup()
    const specs = {
      alive: each.spec({ detachedMs: 600_000 }),
      killed: each.spec(),
      hungry: each.spec(),
      expired: each.spec({ detachedMs: 1000 }),
      forgotten: each.spec(),
    }
    const [, killed, hungry, expired, forgotten] = await orphanSandboxes(each.options, [
      { spec: specs.alive },
      { spec: specs.killed },
      { spec: specs.hungry, shell: `sleep 1; ${SHELL.eatMemory}` },
      { spec: specs.expired },
      { spec: specs.forgotten },
    ])
    process.kill(await sentryOf(each.paths(killed ?? '').state), 'SIGKILL')
    await rm(each.paths(forgotten ?? '').state)
    const dead = [killed, expired].map((hostId) => each.leaf(hostId ?? ''))
    const living = async () => (await Promise.all(dead.map((leaf) => leaf.processes()))).flat()
    await expect.poll(living).toEqual([])
    // The kernel may have chosen its command alone.
    const kills = async () => (await each.leaf(hungry ?? '').evidence()).oomKills
    await expect.poll(kills).toBeGreaterThan(0)

    await using driver = new GvisorDriver(each.options)
    const { adopted, ended } = await driver.recover()
    expect(adopted.map(({ id }) => id)).toEqual([specs.alive.id])
    const kindOf = (id: string) => ended.find((one: EndedSandbox) => one.id === id)?.fate.kind
    expect(kindOf(specs.killed.id)).toBe('lost')
    expect(kindOf(specs.hungry.id)).toBe('oom_limit')
    expect(kindOf(specs.expired.id)).toBe('expired')
    expect(ended).toHaveLength(3)
  })

  test('one that does not answer is ended in bounded time', async () => {
    await using each = await setup()
    const spec = each.spec()
    const [hostId = ''] = await orphanSandboxes(each.options, [{ spec }])
    process.kill(await sentryOf(each.paths(hostId).state), 'SIGSTOP')
    await using driver = new GvisorDriver(each.options)
    const { adopted, ended } = await driver.recover()
    expect(adopted).toEqual([])
    expect(ended).toMatchObject([{ id: spec.id, hostId, fate: { kind: 'lost' } }])
    expect(ended[0]?.fate.detail).toContain('did not answer')
  })

  test('one that was being saved goes on', async () => {
    await using each = await setup()
    const spec = each.spec({ checkpointable: true })
    await orphanSandboxes(each.options, [{ spec, frozen: true }])
    await using driver = new GvisorDriver(each.options)
    const { adopted } = await driver.recover()
    expect(adopted).toHaveLength(1)
    const [sandbox] = adopted
    if (sandbox) expect(await shell(sandbox, SHELL.echo)).toMatchObject({ stdout: 'out\n' })
  })

  test('one that was adopted stays who it is when it is saved and resumed', async () => {
    await using each = await setup()
    await using directory = await temporaryDirectory()
    const spec = each.spec({ checkpointable: true })
    await orphanSandboxes(each.options, [{ spec }])
    await using driver = new GvisorDriver(each.options)
    const { adopted } = await driver.recover()
    const [sandbox] = adopted
    if (!sandbox) throw new Error('nothing was adopted')
    const marks = 'cat /etc/machine-id /dev/sandlot-seed'
    const { stdout } = await shell(sandbox, marks)
    const saved = join(directory.path, 'c')
    await driver.checkpoint(sandbox, saved, { leaveRunning: false })
    expect(await shell(await driver.restore(spec, saved), marks)).toMatchObject({ stdout })
  })

  test('one that was restored ahead ends with its daemon, and nobody misses it', async () => {
    await using each = await setup()
    await using directory = await temporaryDirectory()
    const spec = each.spec({ checkpointable: true })
    const restored = join(directory.path, 'c')
    const hostIds = await orphanSandboxes(each.options, [{ spec, restored }])
    const waiting = each.leaf(hostIds.at(-1) ?? '')
    await expect.poll(() => waiting.processes()).toEqual([])
    await using driver = new GvisorDriver(each.options)
    const { adopted, ended } = await driver.recover()
    expect(adopted.map(({ id }) => id)).toEqual([spec.id])
    expect(ended).toEqual([])
  })

  test('one whose memory is still being written is waited for', async () => {
    await using each = await setup()
    const spec = each.spec({ checkpointable: true })
    const [hostId = ''] = await orphanSandboxes(each.options, [{ spec, frozen: true }])
    const { state } = each.paths(hostId)
    const stored = JSON.parse(await readFile(state, 'utf8'))
    await writeFile(state, JSON.stringify({ ...stored, saving: true }))
    process.kill(stored.sentryPid, 'SIGSTOP')
    await using driver = new GvisorDriver(each.options)
    const recovering = driver.recover()
    const written = setTimeout(
      () => process.kill(stored.sentryPid, 'SIGCONT'),
      RUNTIME_LIMITS.adoptMs + 1_000,
    )
    const { adopted } = await recovering.finally(() => clearTimeout(written))
    expect(adopted).toHaveLength(1)
    const [sandbox] = adopted
    if (sandbox) expect(await shell(sandbox, SHELL.echo)).toMatchObject({ stdout: 'out\n' })
    expect(JSON.parse(await readFile(state, 'utf8'))).toMatchObject({ saving: false })
  })

  test('half-made ones are removed: a leaf alone, a directory alone, a start in its middle, a state that is damaged', async () => {
    await using each = await setup()
    const [leafAlone, directoryAlone, damaged] = [newHostId(), newHostId(), newHostId()]
    const cgroups = cgroupsOf(each.options)
    await cgroups.prepare()
    await each.leaf(leafAlone).create({ memoryBytes: 2 ** 26, pidsMax: 64 })
    await mkdir(each.paths(directoryAlone).root, { recursive: true })
    const { root, state } = each.paths(damaged)
    await mkdir(root, { recursive: true })
    await writeFile(state, '{"hostId":')
    await using driver = new GvisorDriver(each.options)
    expect(await driver.recover()).toEqual({ adopted: [], ended: [], unreadable: [state] })
    expect(await cgroups.list()).toEqual([])
  })

  test('one state directory has one daemon', async () => {
    await using each = await setup()
    await using first = new GvisorDriver(each.options)
    await first.recover()
    await using second = new GvisorDriver(each.options)
    await expect(second.recover()).rejects.toMatchObject({ code: 'unsupported' })
    await first[Symbol.asyncDispose]()
    expect(await second.recover()).toEqual({ adopted: [], ended: [], unreadable: [] })
  })
})

async function sentryOf(state: string): Promise<number> {
  return JSON.parse(await readFile(state, 'utf8')).sentryPid
}

function cgroupsOf({ stateDirectory }: GvisorOptions) {
  const cgroups = detectCgroups(stateDirectory.slice(dirname(stateDirectory).length + 1))
  if (!cgroups) throw new Error('no cgroups')
  return cgroups
}

function leafOf(options: GvisorOptions, hostId: string) {
  return cgroupsOf(options).leaf(hostId)
}
