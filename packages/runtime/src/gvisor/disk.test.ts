import { readFileSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import {
  gvisorPlaces,
  orphanSandboxes,
  pythonImage,
  temporaryDirectory,
  whyNoGvisor,
} from '@sandlot/testkit'
import { describe, expect, test } from 'vitest'
import { type DriverHarness, shell, specFor } from '../conformance/harness.ts'
import { SHELL } from '../conformance/shell-texts.ts'
import { GuestLost } from '../guest/guest-error.ts'
import { GvisorDriver } from './driver.ts'
import { newHostId, sandboxPaths } from './paths.ts'

const reason = await whyNoGvisor()
const MIB = 2 ** 20

/** A driver over directories of its own; the disk is empty in the end. */
async function setup() {
  const places = await gvisorPlaces()
  const { layers } = await pythonImage()
  const { options } = places
  const { stateDirectory, dataDirectory } = options
  const driver = new GvisorDriver(options)
  return {
    options,
    driver,
    spec: (memoryMib = 128, diskMib = 256) => {
      const limits = { memoryBytes: memoryMib * MIB, diskBytes: diskMib * MIB }
      return specFor({ layers } as unknown as DriverHarness, { limits })
    },
    names: () => readdir(join(dataDirectory, 'disks')).catch(() => []),
    sentryOf: async (hostId: string): Promise<number> => {
      const { state } = sandboxPaths(stateDirectory, hostId)
      return JSON.parse(await readFile(state, 'utf8')).sentryPid
    },
    [Symbol.asyncDispose]: async () => {
      await driver[Symbol.asyncDispose]()
      await places[Symbol.asyncDispose]()
    },
  }
}

describe.skipIf(reason !== '')(`disks of sandboxes in gVisor${reason && `: ${reason}`}`, () => {
  test('the file has no name once the sandbox runs, and ends with it', async () => {
    await using each = await setup()
    const sandbox = await each.driver.create(each.spec())
    expect(await each.names()).toEqual([])
    await shell(sandbox, SHELL.fillLarge)
    const { usage } = await each.driver.stop(sandbox)
    expect(usage.diskBytes).toBeGreaterThan(230 * MIB)
    expect(await each.names()).toEqual([])
  })

  test('its gofer leaves no dead process', async () => {
    await using each = await setup()
    for (let n = 0; n < 3; n++) await each.driver.stop(await each.driver.create(each.spec()))
    const sandbox = await each.driver.create(each.spec())
    process.kill(await each.sentryOf(sandbox.hostId), 'SIGKILL')
    await sandbox.gone
    await each.driver.stop(sandbox)
    const [helper] = await childrenOf(process.pid, 'sandlot-helper')
    expect(helper).toBeDefined()
    await expect.poll(() => childrenOf(Number(helper), '')).toEqual([])
  })

  test('many times the memory is written through, read back, and run', async () => {
    await using each = await setup()
    const sandbox = await each.driver.create(each.spec(96, 1_024))
    const script = `
import subprocess
block = lambda n: n.to_bytes(4, 'big') * (1 << 18)
with open('/big', 'wb') as file:
  for n in range(800): file.write(block(n))
with open('/big', 'rb') as file:
  print(sum(file.read(1 << 20) != block(n) for n in range(800)), flush=True)
subprocess.run('cp /bin/echo /mine && /mine ran', shell=True)`
    const { stdout } = await shell(sandbox, '', { argv: ['python3', '-c', script] })
    expect(stdout).toBe('0\nran\n')
    expect((await each.driver.usage(sandbox)).memoryBytes).toBeLessThan(96 * MIB)
  })

  test('mapped files are written out as others are', async () => {
    await using each = await setup()
    const sandbox = await each.driver.create(each.spec(96, 512))
    const script = `
import mmap, os
size = 300 << 20
file = os.open('/mapped', os.O_RDWR | os.O_CREAT)
os.ftruncate(file, size)
pages = mmap.mmap(file, size)
for at in range(0, size, 4096): pages[at] = at >> 12 & 255
print(sum(pages[at] != at >> 12 & 255 for at in range(0, size, 4096)))`
    const argv = ['python3', '-c', script]
    expect(await shell(sandbox, '', { argv })).toMatchObject({ stdout: '0\n' })
  })

  test('more files than the memory has room for end it, as other memory does', async () => {
    await using each = await setup()
    const sandbox = await each.driver.create(each.spec(96))
    await expect(shell(sandbox, SHELL.manyFiles)).rejects.toBeInstanceOf(GuestLost)
    expect((await sandbox.gone).kind).toBe('oom_limit')
  })

  test('too much of it is not saved with the memory, and costs no sandbox', async () => {
    await using each = await setup()
    const sandbox = await each.driver.create({ ...each.spec(96, 9_500), checkpointable: true })
    await shell(sandbox, 'fallocate -l 9G /reserved')
    const directory = join(each.options.dataDirectory, 'c')
    const taken = each.driver.checkpoint(sandbox, directory, { leaveRunning: true })
    await expect(taken).rejects.toMatchObject({
      code: 'unsupported',
      message: expect.stringMatching(/files take 9 GiB of the disk, and at most 8 GiB/),
      hint: expect.stringContaining('filesystem'),
    })
    await shell(sandbox, 'rm /reserved')
    const held = async () => (await each.driver.usage(sandbox)).diskBytes
    await expect.poll(held).toBeLessThan(MIB)
    await each.driver.checkpoint(sandbox, directory, { leaveRunning: true })
    expect(await shell(sandbox, SHELL.echo)).toMatchObject({ exitCode: 0 })
  })

  test('deletions, replaced directories and renames are told of it as of memory', async () => {
    await using each = await setup()
    const sandbox = await each.driver.create(each.spec())
    await shell(
      sandbox,
      'rm -r /usr/share/doc && mkdir /usr/share/doc && echo new > /usr/share/doc/new && mv /usr/share/zoneinfo /zones && rm /bin/sh',
    )
    const argv = ['/bin/ls', '/usr/share/doc', '/bin/sh', '/usr/share/zoneinfo']
    expect((await shell(sandbox, '', { argv })).stdout).toBe('/usr/share/doc:\nnew\n')
  })

  test('a start that fails leaves no name', async () => {
    await using each = await setup()
    const layers = [{ digest: 'sha256:0', path: '/nowhere/layer.erofs' }]
    await expect(each.driver.create({ ...each.spec(), layers })).rejects.toMatchObject({
      code: 'create_failed',
    })
    const signal = AbortSignal.timeout(60)
    await each.driver.create(each.spec(), { signal }).then(
      (sandbox) => each.driver.stop(sandbox),
      () => {},
    )
    expect(await each.names()).toEqual([])
  })

  test('after the daemon was killed the file still ends with its sandbox', async () => {
    await using each = await setup()
    const [hostId = ''] = await orphanSandboxes(each.options, [
      { spec: each.spec(), shell: SHELL.fillLarge },
    ])
    expect(await each.names()).toEqual([])
    const descriptors = `/proc/${await each.sentryOf(hostId)}/fd`
    await expect.poll(() => readdir(descriptors).catch(() => [])).not.toEqual([])
    process.kill(await each.sentryOf(hostId), 'SIGKILL')
    await expect.poll(() => readdir(descriptors).catch(() => [])).toEqual([])
    expect(await each.names()).toEqual([])
    expect((await each.driver.recover()).ended).toHaveLength(1)
  })

  test('names that a daemon left in the middle of a start are removed by the next', async () => {
    await using each = await setup()
    const [old, young] = [newHostId(), newHostId()]
    const directory = join(each.options.dataDirectory, 'disks')
    for (const hostId of [old, young]) await mkdir(join(directory, hostId), { recursive: true })
    await utimes(join(directory, old), 1, 1)
    await each.driver.recover()
    // It may be that of another daemon, which is about to start a sandbox.
    expect(await each.names()).toEqual([young])
    await rm(join(directory, young), { recursive: true })
  })

  test('a data directory in memory is no disk', async () => {
    await using each = await setup()
    await using memory = await temporaryDirectory('/dev/shm')
    const { stateDirectory } = each.options
    await using driver = new GvisorDriver({
      ...each.options,
      stateDirectory: `${stateDirectory}-m`,
      dataDirectory: memory.path,
    })
    const refused = { code: 'unsupported', message: expect.stringContaining('tmpfs') }
    await expect(driver.create(each.spec())).rejects.toMatchObject(refused)
    await expect(driver.diskSpace()).rejects.toMatchObject(refused)
    const findings = await driver.probe()
    expect(findings.find(({ name }) => name === 'large disks')).toMatchObject({
      ok: false,
      required: false,
      mend: expect.stringContaining('SANDLOT_DATA_DIRECTORY'),
    })
    await rm(`${stateDirectory}-m`, { recursive: true, force: true })
  })
})

/** Dead ones too. */
async function childrenOf(parent: number, name: string): Promise<readonly string[]> {
  const pids = (await readdir('/proc')).filter((pid) => /^\d+$/.test(pid))
  return pids.filter((pid) => {
    const [, comm = '', ppid] = /\((.*)\) . (\d+)/.exec(textOf(`/proc/${pid}/stat`)) ?? []
    return Number(ppid) === parent && comm.includes(name)
  })
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
