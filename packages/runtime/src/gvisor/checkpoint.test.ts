import { readdir, readFile, truncate, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { gvisorPlaces, pythonImage, temporaryDirectory, whyNoGvisor } from '@sandlot/testkit'
import { describe, expect, test } from 'vitest'
import { detectCgroups } from '../cgroup/detect.ts'
import { type DriverHarness, shell, specFor } from '../conformance/harness.ts'
import { SHELL } from '../conformance/shell-texts.ts'
import { GvisorDriver } from './driver.ts'
import { sandboxPaths } from './paths.ts'

const reason = await whyNoGvisor()

/** A driver, a sandbox of it that may be saved, and a place for that. `runsc`: a shell text that may say no to a verb. */
async function setup(refuse = '') {
  const places = await gvisorPlaces()
  const directory = await temporaryDirectory()
  const place = (name: string) => join(directory.path, name)
  const runsc = place('runsc')
  const script = `#!/bin/sh\ncase "$*" in ${refuse} esac\nexec ${places.options.runsc} "$@"\n`
  await writeFile(runsc, script, { mode: 0o755 })
  const { stateDirectory } = places.options
  const driver = new GvisorDriver({ ...places.options, runsc })
  const { layers } = await pythonImage()
  const spec = () => specFor({ layers } as unknown as DriverHarness, { checkpointable: true })
  return {
    driver,
    spec,
    place,
    leaf: (hostId: string) => detectCgroups(basename(stateDirectory))?.leaf(hostId),
    sentryOf: async (hostId: string): Promise<number> =>
      JSON.parse(await readFile(sandboxPaths(stateDirectory, hostId).state, 'utf8')).sentryPid,
    sandbox: await driver.create(spec()),
    [Symbol.asyncDispose]: async () => {
      await driver[Symbol.asyncDispose]()
      await places[Symbol.asyncDispose]()
      await directory[Symbol.asyncDispose]()
    },
  }
}

describe.skipIf(reason !== '')(`checkpoints of gVisor${reason && `: ${reason}`}`, () => {
  test('what was damaged, or taken elsewhere, is refused by what differs', async () => {
    await using each = await setup()
    const { driver, sandbox, place, spec } = each
    await driver.checkpoint(sandbox, place('c'), { leaveRunning: true })
    const facts = place('c/facts.json')
    const whole = await readFile(facts, 'utf8')
    const refused = (message: string) =>
      expect(driver.restore(spec(), place('c'))).rejects.toMatchObject({
        code: 'snapshot_incompatible',
        message: expect.stringContaining(message),
      })
    const say = (change: object) =>
      writeFile(facts, JSON.stringify({ ...JSON.parse(whole), ...change }))
    await say({ runtime: 'release-20230101.0' })
    await refused('release-20230101.0')
    await say({ cpuFeatures: 'fpu,abacus' })
    await refused('abacus')
    await say({ agent: 'another' })
    await refused('another')
    await say({ format: 0 })
    await refused('format')
    // Of before there were such facts.
    await writeFile(facts, '{"format":0,"of":"old"}')
    await refused('format: taken with 0')
    await writeFile(facts, whole.slice(0, -20))
    await refused('facts.json')
    await writeFile(facts, whole)
    const image = place('c/checkpoint.img')
    const bytes = await readFile(image)
    await writeFile(image, Buffer.from(bytes).fill(0, 1_000, 2_000))
    await refused('checkpoint.img')
    await writeFile(image, bytes)
    const copy = await driver.restore(spec(), place('c'))
    expect(await shell(copy, SHELL.echo)).toMatchObject({ exitCode: 0 })
    await truncate(place('c/pages.img'), 4_096)
    await refused('pages.img')
  })

  test.each([
    [
      'a full disk',
      '*checkpoint*) echo "write: no space left on device" >&2; exit 128;;',
      'no_space',
    ],
    ['a runtime that fails', '*checkpoint*) echo "no luck" >&2; exit 128;;', 'checkpoint_failed'],
  ])('%s costs no sandbox, also when it was to be stopped', async (_, refuse, code) => {
    await using each = await setup(refuse)
    const { driver, sandbox, place } = each
    for (const leaveRunning of [true, false]) {
      const taken = driver.checkpoint(sandbox, place('c'), { leaveRunning })
      await expect(taken).rejects.toMatchObject({ code })
      expect(await shell(sandbox, SHELL.echo)).toMatchObject({ exitCode: 0 })
    }
    expect(await readdir(place('.'))).toEqual(['runsc'])
  })

  test('a restore that fails says so, and leaves nothing', async () => {
    await using each = await setup('*restore*) echo "no luck" >&2; exit 128;;')
    const { driver, sandbox, place, spec } = each
    await driver.checkpoint(sandbox, place('c'), { leaveRunning: true })
    await expect(driver.restore(spec(), place('c'))).rejects.toMatchObject({
      code: 'create_failed',
      message: expect.stringContaining('no luck'),
    })
  })

  test('restored ahead, what is busy uses no processor until it is taken', async () => {
    await using each = await setup()
    const { driver, sandbox, place, spec } = each
    await shell(sandbox, 'setsid sh -c "while :; do :; done" > /dev/null 2>&1 &')
    await driver.checkpoint(sandbox, place('c'), { leaveRunning: false })
    const { layers, limits } = spec()
    const blank = await driver.createBlank({
      checkpoint: { directory: place('c'), layers, limits },
    })
    const leaf = each.leaf(blank.hostId)
    const usedMs = async () => (await leaf?.usage())?.cpuMs ?? 0
    const before = await usedMs()
    // Its twin is busy for two seconds meanwhile.
    const twin = await driver.restore(spec(), place('c'))
    const twinMs = async () => (await driver.usage(twin)).cpuMs
    await expect.poll(twinMs, { timeout: 60_000 }).toBeGreaterThan(2_000)
    await driver.stop(twin)
    const waited = (await usedMs()) - before
    expect(waited).toBeLessThan(100)
    await driver.checkout(blank, spec())
    await expect.poll(usedMs, { timeout: 60_000 }).toBeGreaterThan(before + waited + 500)
  })

  test('restored ahead, one that stands still when it is taken is given up', async () => {
    await using each = await setup()
    const { driver, sandbox, place, spec } = each
    await driver.checkpoint(sandbox, place('c'), { leaveRunning: false })
    const { layers, limits } = spec()
    const blank = await driver.createBlank({
      checkpoint: { directory: place('c'), layers, limits },
    })
    process.kill(await each.sentryOf(blank.hostId), 'SIGSTOP')
    await expect(driver.checkout(blank, spec())).rejects.toMatchObject({ code: 'create_failed' })
    expect(await blank.gone).toMatchObject({ kind: 'stopped' })
  })
})
