import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryDirectory } from '@sandlot/testkit'
import { expect, test } from 'vitest'
import { newHostId, sandboxesDirectory, stateLock } from '../gvisor/paths.ts'
import { tryFileLock } from '../image/file-lock.ts'
import { cgroupParents, leavesOf, removeParent } from './cgroup-leaves.ts'
import { findLeftovers, removeLeftovers } from './find.ts'
import { heldLocks } from './held-files.ts'
import { findProcess, isStill } from './process-table.ts'
import { findStaging } from './staging.ts'
import { stateDirectoriesIn } from './state-directories.ts'
import { surveyMachine } from './survey.ts'

test('folders of sandboxes and names on the disk are found, and removed', async () => {
  await using place = await temporaryDirectory()
  const [hostId, other] = [newHostId(), newHostId()]
  const scope = {
    stateDirectory: join(place.path, 'sandlot-state'),
    dataDirectory: join(place.path, 'data'),
  }
  const folder = join(sandboxesDirectory(scope.stateDirectory), hostId)
  const disk = join(scope.dataDirectory, 'disks', other)
  for (const path of [folder, disk]) await mkdir(path, { recursive: true })
  const found = await findLeftovers(scope)
  expect(found).toMatchObject([
    { kind: 'directory', what: folder, hostId },
    { kind: 'disk', what: disk, hostId: other },
  ])
  expect(await removeLeftovers(found)).toEqual([])
  expect(existsSync(folder) || existsSync(disk)).toBe(false)
  expect(await findLeftovers(scope)).toEqual([])
})

test('of a hierarchy with several controllers a leaf is one thing', async () => {
  await using root = await temporaryDirectory()
  for (const controller of ['memory', 'pids']) {
    await mkdir(join(root.path, controller, 'sandlot-a', 'leaf'), { recursive: true })
    await mkdir(join(root.path, controller, 'another'), { recursive: true })
  }
  expect(cgroupParents(root.path)).toEqual(['sandlot-a'])
  expect(await leavesOf('sandlot-a', root.path)).toEqual([
    {
      hostId: 'leaf',
      directories: [
        join(root.path, 'memory/sandlot-a/leaf'),
        join(root.path, 'pids/sandlot-a/leaf'),
      ],
    },
  ])
  // A leaf is in it.
  expect(await removeParent('sandlot-a', root.path)).toBe(false)
})

test('a process is told from a later one of the same number', async () => {
  const child = spawn('sleep', ['1000'])
  const ended = once(child, 'exit')
  // A program runs a moment before its arguments are seen.
  await expect.poll(() => findProcess(child.pid ?? 0)?.command).toBe('sleep 1000')
  const found = findProcess(child.pid ?? 0)
  if (!found) throw new Error('it does not run')
  expect(found).toMatchObject({ parentPid: process.pid, command: 'sleep 1000' })
  expect(isStill(found)).toBe(true)
  expect(isStill({ ...found, startTicks: found.startTicks - 1 })).toBe(false)
  child.kill('SIGKILL')
  await ended
  expect(isStill(found)).toBe(false)
})

test('who holds a lock is seen without touching it, also of a folder that was tidied away', async () => {
  await using place = await temporaryDirectory()
  const stateDirectory = join(place.path, 'sandlot-0')
  await mkdir(sandboxesDirectory(stateDirectory), { recursive: true })
  const hostId = newHostId()
  await mkdir(join(sandboxesDirectory(stateDirectory), hostId))
  const survey = async () =>
    (await surveyMachine({ runDirectory: place.path, dataDirectories: [] })).drivers
  {
    using _ = tryFileLock(stateLock(stateDirectory))
    expect(heldLocks().get(stateLock(stateDirectory))).toBe(process.pid)
    expect(await survey()).toMatchObject([{ stateDirectory, owner: process.pid, left: [] }])
  }
  const [free] = await survey()
  expect(free).toMatchObject({ waiting: [], left: [{ kind: 'directory', hostId }] })
  {
    // A daemon has begun there meanwhile.
    using _ = tryFileLock(stateLock(stateDirectory))
    expect(await free?.remove({ waiting: true })).toEqual([])
    expect(existsSync(join(sandboxesDirectory(stateDirectory), hostId))).toBe(true)
  }
  expect(await free?.remove({ waiting: true })).toEqual([])
  expect(existsSync(stateDirectory)).toBe(false)
})

test('a driver’s folder is known by its name, in a run directory or as one', async () => {
  await using place = await temporaryDirectory()
  for (const path of ['sandlot/sandlot-1/b', 'sandlot-2/b', 'sandlot-3/s', 'other/sandlot-4/b']) {
    await mkdir(join(place.path, path), { recursive: true })
  }
  expect([...stateDirectoriesIn(place.path)].sort()).toEqual(
    ['sandlot-2', 'sandlot/sandlot-1'].map((path) => join(place.path, path)),
  )
})

test('what is half made in a data directory is nobody’s where no daemon and no build has it', async () => {
  await using place = await temporaryDirectory()
  const at = (...names: string[]) => join(place.path, ...names)
  const made = ['images/tmp/key', 'images/tmp/own-0', 'engine/blobs/incoming/1', 'checkpoints/sn_1']
  for (const path of [...made, 'images/locks', 'checkpoints/sn_1.part', 'checkpoints/sb_1']) {
    await mkdir(at(path), { recursive: true })
  }
  await writeFile(at('key.1.part'), '')
  await mkdir(at('runtime/disks', newHostId(), 'main'), { recursive: true })
  using _ = tryFileLock(at('images/locks/own-0'))
  const whats = async () => (await findStaging(place.path, heldLocks())).map(({ what }) => what)
  const [disk] = await readdir(at('runtime/disks'))
  expect((await whats()).sort()).toEqual(
    [
      at('runtime/disks', disk ?? ''),
      at('checkpoints/sn_1.part'),
      at('engine/blobs/incoming/1'),
      at('images/tmp/key'),
      at('key.1.part'),
    ].sort(),
  )
  const held = new Map([[at('engine/lock.db'), process.pid]])
  expect(await findStaging(place.path, held)).toEqual([])
})

test('whoever only reads a log of the runtime is none of its processes', async () => {
  await using place = await temporaryDirectory()
  const stateDirectory = join(place.path, 'sandlot-0')
  const log = join(sandboxesDirectory(stateDirectory), newHostId(), 'runsc.log')
  const reader = spawn('tail', ['--follow=name', '--retry', log], { stdio: 'ignore' })
  const ended = once(reader, 'exit')
  await expect.poll(() => findProcess(reader.pid ?? 0)?.command).toContain(log)
  expect(await findLeftovers({ stateDirectory })).toEqual([])
  reader.kill('SIGKILL')
  await ended
})
