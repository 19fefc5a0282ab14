import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { detectCgroups } from './detect.ts'
import { type KernelOptions, KernelV2 } from './testing/kernel-v2.ts'
import { cgroupsV2 } from './v2.ts'

// A kernel in memory stands for the machine's: what is written where, how what is read is understood, and what it refuses.
const root = '/sys/fs/cgroup'
const limits = { memoryBytes: 64 * 2 ** 20, cpus: 1.5, pidsMax: 640 }
const LEAF = `${root}/sandlot/h1`

function open(options: Partial<KernelOptions> = {}) {
  const kernel = new KernelV2({ root, ...options })
  const cgroups = cgroupsV2(root, 'sandlot', kernel)
  const read = (path: string) => kernel.read(`${root}/${path}`).trim()
  const meets = (name: string, text: string) => kernel.meets(`${LEAF}/${name}`, text)
  return { kernel, cgroups, read, meets }
}

async function made(options: Partial<KernelOptions> = {}) {
  const at = open(options)
  await at.cgroups.prepare()
  const leaf = at.cgroups.leaf('h1')
  await leaf.create(limits)
  return { ...at, leaf }
}

const children: ChildProcess[] = []
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

/** A real process, in a group of the kernel that is not. */
function member(kernel: KernelV2, directory: string): { pid: number; gone: Promise<unknown> } {
  const child = spawn('sleep', ['1000'])
  children.push(child)
  const pid = child.pid ?? 0
  kernel.place(directory, { pid, kill: () => child.kill('SIGKILL') })
  const gone = once(child, 'exit').then(() => kernel.ended(pid))
  return { pid, gone }
}

describe('a machine', () => {
  test.each([
    ['with all controllers is found', 'cpuset cpu io memory pids\n', 2],
    ['without one of them is not', 'cpu pids\n', undefined],
  ])('%s', async (_, controllers, version) => {
    const directory = await mkdtemp(join(tmpdir(), 'sandlot-cgroup-'))
    try {
      await writeFile(join(directory, 'cgroup.controllers'), controllers)
      expect(detectCgroups('sandlot', directory)?.version).toBe(version)
    } finally {
      await rm(directory, { recursive: true })
    }
  })
})

describe('controllers are handed on', () => {
  test('and limits are written', async () => {
    const { leaf, cgroups, read } = await made()
    expect(read('cgroup.subtree_control')).toBe('memory cpu pids')
    expect(read('sandlot/cgroup.subtree_control')).toBe('memory cpu pids')
    expect(read('sandlot/h1/memory.max')).toBe(String(64 * 2 ** 20))
    expect(read('sandlot/h1/memory.swap.max')).toBe('0')
    expect(read('sandlot/h1/memory.high')).toBe('max')
    expect(read('sandlot/h1/memory.oom.group')).toBe('1')
    expect(read('sandlot/h1/cpu.max')).toBe('150000 100000')
    expect(read('sandlot/h1/pids.max')).toBe('640')
    expect(leaf.joinFiles).toEqual([`${LEAF}/cgroup.procs`])
    expect(await cgroups.list()).toEqual(['h1'])
    await expect(leaf.create(limits)).rejects.toMatchObject({ code: 'EEXIST' })
    await leaf.weigh(0.1)
    expect(read('sandlot/h1/cpu.weight')).toBe('10')
    for (const [share, weight] of [
      [0, '1'],
      [1_000, '10000'],
    ] as const) {
      await leaf.weigh(share)
      expect(read('sandlot/h1/cpu.weight')).toBe(weight)
    }
  })

  test('without a quota there is none, and the least one is a millisecond', async () => {
    const { leaf, read } = await made()
    await leaf.limit({ memoryBytes: 4096, pidsMax: 2 })
    expect(read('sandlot/h1/cpu.max')).toBe('max 100000')
    await leaf.limit({ memoryBytes: 4096, pidsMax: 2, cpus: 0.0001 })
    expect(read('sandlot/h1/cpu.max')).toBe('1000 100000')
  })

  test('also in a container, whose root has processes: they are moved aside', async () => {
    const { kernel, cgroups, read } = open({ isMachine: false })
    const pids = [member(kernel, root), member(kernel, root)].map(({ pid }) => String(pid))
    expect(() => kernel.write(`${root}/cgroup.subtree_control`, '+memory')).toThrow('EBUSY')
    await cgroups.prepare()
    await cgroups.prepare()
    expect(read('cgroup.subtree_control')).toBe('memory cpu pids')
    expect(read('cgroup.procs')).toBe('')
    expect(read('init/cgroup.procs').split('\n')).toEqual(pids)
    const leaf = cgroups.leaf('h1')
    await leaf.create(limits)
    expect(await cgroups.list()).toEqual(['h1'])
    // It was made for sandboxes; what stood in the way is the container's own.
    await leaf.remove(5)
    await cgroups.dispose()
    expect(await kernel.directories(root)).toEqual(['init'])
  })

  test('where they can’t be it is said what a daemon needs', async () => {
    const { cgroups } = open({ controllers: ['cpu', 'pids'] })
    await expect(cgroups.prepare()).rejects.toMatchObject({
      ...{ name: 'DriverError', code: 'unsupported' },
      message: expect.stringContaining('cgroup.subtree_control: ENOENT'),
      hint: expect.stringContaining('memory, cpu and pids'),
    })
  })

  test('nothing lives in a group that hands them on', async () => {
    const { kernel } = await made()
    expect(() => member(kernel, `${root}/sandlot`)).toThrow('EBUSY')
  })
})

describe('what is read', () => {
  test('usage', async () => {
    const { leaf, meets } = await made()
    meets('cpu.stat', 'usage_usec 1500000\nuser_usec 1\nnr_throttled 3\nthrottled_usec 250000')
    meets('memory.current', '65536')
    meets('memory.stat', 'anon 4096\ninactive_file 20480\nactive_file 40960\nshmem 0')
    meets('memory.peak', '8192')
    expect(await leaf.usage()).toEqual({ cpuMs: 1500, memoryBytes: 4096, memoryPeakBytes: 8192 })
    expect(await leaf.memoryBytes()).toBe(4096)
    expect(await leaf.heldUpMs()).toBe(250)
  })

  test('what groups above leave of the memory', async () => {
    const { kernel, cgroups } = await made({ isMachine: false })
    expect(await cgroups.memoryAbove()).toEqual({
      limitBytes: Number.POSITIVE_INFINITY,
      availableBytes: Number.POSITIVE_INFINITY,
    })
    kernel.write(`${root}/memory.max`, '1000000')
    kernel.meets(`${root}/memory.current`, '400000')
    kernel.meets(`${root}/memory.stat`, 'anon 0\ninactive_file 100000\nactive_file 100000')
    kernel.write(`${root}/sandlot/memory.max`, '900000')
    kernel.meets(`${root}/sandlot/memory.current`, '50000')
    expect(await cgroups.memoryAbove()).toEqual({ limitBytes: 1_000_000, availableBytes: 800_000 })
  })

  test.each([
    ['at its own limit', 'low 0\nhigh 0\nmax 9\noom 1\noom_kill 2\noom_group_kill 1\n', 2, true],
    ['by the machine', 'low 0\nhigh 0\nmax 0\noom 0\noom_kill 1\noom_group_kill 1\n', 1, false],
    ['not at all', 'low 0\nhigh 0\nmax 3\noom 0\noom_kill 0\noom_group_kill 0\n', 0, false],
    ['on a kernel before 5.17', 'low 0\nhigh 0\nmax 1\noom 1\noom_kill 1\n', 1, true],
  ])('evidence of a kill %s', async (_, events, oomKills, limitHit) => {
    const { leaf, meets } = await made()
    meets('memory.events', events)
    expect(await leaf.evidence()).toMatchObject({ oomKills, limitHit, limitBytes: 64 * 2 ** 20 })
  })
})

describe('a kill', () => {
  test('is one write, and over when nothing is populated', async () => {
    const { kernel, leaf } = await made()
    const { gone } = member(kernel, LEAF)
    expect((await leaf.processes()).length).toBe(1)
    expect(await leaf.remove(5)).toBe(false)
    expect(await leaf.kill(5_000)).toBe(true)
    await gone
    expect(await leaf.remove(5)).toBe(true)
  })

  test('of what the kernel still holds is not over', async () => {
    const { kernel, leaf } = await made()
    kernel.place(LEAF, { pid: 2 ** 30, kill: () => {} })
    expect(await leaf.kill(5)).toBe(false)
    expect(await leaf.remove(5)).toBe(false)
    kernel.ended(2 ** 30)
    expect(await leaf.kill(5)).toBe(true)
  })

  test('of a leaf that is gone is over, and so is its removal', async () => {
    const leaf = open().cgroups.leaf('never')
    expect(await leaf.processes()).toEqual([])
    expect(await leaf.kill(5)).toBe(true)
    expect(await leaf.remove(5)).toBe(true)
    expect(await leaf.evidence()).toMatchObject({ oomKills: 0, limitHit: false })
  })
})

describe('an older kernel', () => {
  const lacks = ['cgroup.kill', 'memory.peak', 'memory.oom.group', 'memory.swap.max']

  test('takes no order to kill: each process is ended', async () => {
    const { kernel, leaf } = await made({ lacks })
    const members = [member(kernel, LEAF), member(kernel, LEAF)]
    expect(await leaf.kill(5_000)).toBe(true)
    await Promise.all(members.map(({ gone }) => gone))
    expect(await leaf.remove(5)).toBe(true)
  })

  test('keeps no peak: it is no less than what is charged', async () => {
    const { leaf, meets } = await made({ lacks })
    meets('memory.current', '65536')
    expect(await leaf.usage()).toMatchObject({ memoryPeakBytes: 65_536 })
  })

  test('without a controller’s file says so', async () => {
    const made_ = made({ lacks: ['pids.max'] })
    await expect(made_).rejects.toMatchObject({ code: 'ENOENT' })
  })
})
