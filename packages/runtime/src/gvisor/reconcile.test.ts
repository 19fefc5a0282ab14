import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, open, readFile, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { gvisorPlaces, orphanSandboxes, pythonImage, whyNoGvisor } from '@sandlot/testkit'
import { describe, expect, test } from 'vitest'
import { detectCgroups } from '../cgroup/detect.ts'
import { type DriverHarness, shell, specFor } from '../conformance/harness.ts'
import { SHELL } from '../conformance/shell-texts.ts'
import { surveyMachine } from '../leftovers/survey.ts'
import { RUNTIME_LIMITS } from '../limits.ts'
import { GvisorDriver } from './driver.ts'
import { newHostId, sandboxPaths } from './paths.ts'

const reason = await whyNoGvisor()
const NOTHING = { removed: [], stuck: [], dead: [], unwanted: [] }

async function setup() {
  const places = await gvisorPlaces()
  const { options } = places
  const { stateDirectory } = options
  const { layers } = await pythonImage()
  const cgroups = detectCgroups(basename(stateDirectory))
  if (!cgroups) throw new Error('no cgroups')
  return {
    options,
    spec: () => specFor({ layers } as unknown as DriverHarness),
    leaf: cgroups.leaf,
    [Symbol.asyncDispose]: async () => {
      await places[Symbol.asyncDispose]()
    },
  }
}

describe.skipIf(reason !== '')(`a driver and its machine${reason && `: ${reason}`}`, () => {
  test('are brought in line: what is nobody’s goes, what lives stays', async () => {
    await using each = await setup()
    await using driver = new GvisorDriver(each.options)
    await driver.recover()
    const sandbox = await driver.create(each.spec())
    const blank = await driver.createBlank()
    const look = () => driver.reconcile({ isWanted: () => true })
    expect(await look()).toEqual(NOTHING)

    const [withProcess, folderAlone] = [newHostId(), newHostId()]
    const leaf = each.leaf(withProcess)
    await leaf.create({ memoryBytes: 2 ** 26, pidsMax: 64 })
    const stray = spawn('sleep', ['1000'])
    const ended = once(stray, 'exit')
    for (const file of leaf.joinFiles) await writeFile(file, String(stray.pid))
    const folder = sandboxPaths(each.options.stateDirectory, folderAlone).directory
    await mkdir(join(folder, 'r'), { recursive: true })

    // What begins or ends is of nobody for a moment: one look alone removes nothing.
    expect(await look()).toEqual(NOTHING)
    const { removed, ...others } = await look()
    expect(removed).toHaveLength(2)
    expect(removed.join()).toContain(withProcess)
    expect(removed.join()).toContain(folder)
    expect(others).toEqual({ stuck: [], dead: [], unwanted: [] })
    expect(await ended).toEqual([null, 'SIGKILL'])
    expect(existsSync(folder)).toBe(false)
    expect(await look()).toEqual(NOTHING)
    expect(await shell(sandbox, SHELL.echo)).toMatchObject({ stdout: 'out\n' })
    await driver.stop(blank)
  })

  test('one of which nothing runs any more is ended, whoever holds its pipes', async () => {
    await using each = await setup()
    await using driver = new GvisorDriver(each.options)
    await driver.recover()
    const sandbox = await driver.create(each.spec())
    const { hostId } = sandbox
    const look = () => driver.reconcile({ isWanted: () => true })
    {
      // Its pipe has no end as long as somebody else could still write to it.
      const { output } = sandboxPaths(each.options.stateDirectory, hostId)
      await using _held = await open(output, 'r+')
      await each.leaf(hostId).kill(RUNTIME_LIMITS.killMs)
      expect(await look()).toEqual(NOTHING)
      expect(await look()).toEqual({ ...NOTHING, dead: [hostId] })
      expect(await sandbox.gone).toMatchObject({ kind: 'lost' })
    }
    expect(await look()).toEqual(NOTHING)
  })

  test('what is of a daemon that is gone is told apart: left, or waiting for the next one', async () => {
    await using each = await setup()
    const { stateDirectory } = each.options
    const [owned = '', blank = ''] = await orphanSandboxes(each.options, [{ spec: each.spec() }])
    // Without a word in its state file nobody owns it.
    const { state } = sandboxPaths(stateDirectory, blank)
    expect(JSON.parse(await readFile(state, 'utf8'))).not.toHaveProperty('owner')
    const survey = async () => {
      const { drivers } = await surveyMachine({ dataDirectories: [] })
      const found = drivers.find((driver) => driver.stateDirectory === stateDirectory)
      if (!found) throw new Error('the driver is not on the machine')
      return found
    }
    const before = await survey()
    expect(before.owner).toBeUndefined()
    expect(before.waiting).toEqual([owned])
    expect([...new Set(before.left.map(({ hostId }) => hostId))]).toEqual([blank])
    expect(new Set(before.left.map(({ kind }) => kind))).toEqual(
      new Set(['process', 'cgroup', 'directory']),
    )
    expect(await before.remove({ waiting: false })).toEqual([])
    expect(await survey()).toMatchObject({ waiting: [owned], left: [] })

    {
      await using driver = new GvisorDriver(each.options)
      const { adopted } = await driver.recover()
      expect(adopted).toHaveLength(1)
      const owner = await survey()
      expect(owner).toMatchObject({ owner: process.pid, waiting: [], left: [] })
      await owner.remove({ waiting: true })
      const [sandbox] = adopted
      if (sandbox) expect(await shell(sandbox, SHELL.echo)).toMatchObject({ stdout: 'out\n' })
    }
    const [again = ''] = await orphanSandboxes(each.options, [{ spec: each.spec() }])
    const last = await survey()
    expect(last.waiting).toEqual([again])
    expect(await last.remove({ waiting: true })).toEqual([])
    expect(existsSync(stateDirectory)).toBe(false)
  })
})
