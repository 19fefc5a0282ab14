import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { detectCgroups } from './detect.ts'
import { cgroupsV2 } from './v2.ts'

// A directory of plain files stands for the hierarchy: what is written where, and how what is read is understood.
let root = ''
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'sandlot-cgroup-'))
  await writeFile(join(root, 'cgroup.controllers'), 'cpuset cpu io memory pids\n')
})
afterEach(() => rm(root, { recursive: true, force: true }))

const limits = { memoryBytes: 64 * 2 ** 20, cpus: 1.5, pidsMax: 640 }
const read = (...path: string[]) => readFile(join(root, ...path), 'utf8')
const write = (name: string, text: string) => writeFile(join(root, 'sandlot', 'h1', name), text)

async function made() {
  const cgroups = cgroupsV2(root, 'sandlot')
  await cgroups.prepare()
  const leaf = cgroups.leaf('h1')
  await leaf.create(limits)
  return { cgroups, leaf }
}

describe('cgroup v2', () => {
  test('a machine with all controllers is found', () => {
    expect(detectCgroups('sandlot', root)?.version).toBe(2)
  })

  test('a machine without one of them is not', async () => {
    await writeFile(join(root, 'cgroup.controllers'), 'cpu pids\n')
    expect(detectCgroups('sandlot', root)).toBeUndefined()
  })

  test('controllers are delegated, limits are written', async () => {
    const { leaf, cgroups } = await made()
    expect(await read('cgroup.subtree_control')).toBe('+memory +cpu +pids')
    expect(await read('sandlot', 'cgroup.subtree_control')).toBe('+memory +cpu +pids')
    expect(await read('sandlot', 'h1', 'memory.max')).toBe(String(64 * 2 ** 20))
    expect(await read('sandlot', 'h1', 'cpu.max')).toBe('150000 100000')
    expect(await read('sandlot', 'h1', 'pids.max')).toBe('640')
    expect(leaf.joinFiles).toEqual([join(root, 'sandlot', 'h1', 'cgroup.procs')])
    expect(await cgroups.list()).toEqual(['h1'])
    await expect(leaf.create(limits)).rejects.toThrow('EEXIST')
  })

  test('without a quota there is none', async () => {
    const { leaf } = await made()
    await leaf.limit({ memoryBytes: 1, pidsMax: 2 })
    expect(await read('sandlot', 'h1', 'cpu.max')).toBe('max 100000')
  })

  test('usage', async () => {
    const { leaf } = await made()
    await write('cpu.stat', 'usage_usec 1500000\nuser_usec 1\n')
    await write('memory.current', '65536\n')
    await write('memory.stat', 'anon 4096\ninactive_file 20480\nactive_file 40960\nshmem 0\n')
    await write('memory.peak', '8192\n')
    expect(await leaf.usage()).toEqual({ cpuMs: 1500, memoryBytes: 4096, memoryPeakBytes: 8192 })
  })

  test.each([
    ['at its own limit', 'low 0\nhigh 0\nmax 9\noom 1\noom_kill 2\noom_group_kill 1\n', 2, true],
    ['by the machine', 'low 0\nhigh 0\nmax 0\noom 0\noom_kill 1\noom_group_kill 0\n', 1, false],
    ['not at all', 'low 0\nhigh 0\nmax 3\noom 0\noom_kill 0\noom_group_kill 0\n', 0, false],
  ])('evidence of a kill %s', async (_, events, oomKills, limitHit) => {
    const { leaf } = await made()
    await write('memory.events', events)
    expect(await leaf.evidence()).toMatchObject({ oomKills, limitHit, limitBytes: 64 * 2 ** 20 })
  })

  test('a kill is one write, and over when nothing is populated', async () => {
    const { leaf } = await made()
    await write('cgroup.procs', '')
    await write('cgroup.kill', '')
    await write('cgroup.events', 'populated 1\nfrozen 0\n')
    expect(await leaf.kill(5)).toBe(false)
    expect(await read('sandlot', 'h1', 'cgroup.kill')).toBe('1')
    await write('cgroup.events', 'populated 0\nfrozen 0\n')
    expect(await leaf.kill(5)).toBe(true)
  })

  test('a leaf that is gone is empty, and its removal is done', async () => {
    const leaf = cgroupsV2(root, 'sandlot').leaf('never')
    expect(await leaf.processes()).toEqual([])
    expect(await leaf.kill(5)).toBe(true)
    expect(await leaf.remove(5)).toBe(true)
  })
})
