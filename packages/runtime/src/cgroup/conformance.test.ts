import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { afterEach, describe, expect, test } from 'vitest'
import type { CgroupLeaf, Cgroups } from './cgroups.ts'
import { detectCgroups } from './detect.ts'
import { type ControlIo, kernelIo } from './io.ts'
import { KernelV2 } from './testing/kernel-v2.ts'
import { cgroupsV1 } from './v1.ts'
import { cgroupsV2 } from './v2.ts'

/** A hierarchy that the suite runs over: the kernel's own, or what stands in its place. */
interface Hierarchy extends AsyncDisposable {
  readonly cgroups: Cgroups
  /** What the kernel does by itself when a leaf is made. */
  made(leaf: CgroupLeaf): Promise<void>
  /** The process joins, and is seen to leave when it ends. */
  join(leaf: CgroupLeaf, child: ChildProcess): Promise<void>
}

const MIB = 2 ** 20
const LIMITS = { memoryBytes: 64 * MIB, cpus: 0.5, pidsMax: 32 }
const isRoot = process.getuid?.() === 0
const parent = `sandlot-suite-${process.pid}`
const detected = isRoot ? detectCgroups(parent) : undefined

const KINDS: Record<string, (() => Promise<Hierarchy>) | undefined> = {
  [`of this machine (${detected ? `v${detected.version}` : 'none: needs root, memory, cpu and pids'})`]:
    detected && (async () => real(detected)),
  'v1, simulated': simulatedV1,
  'v2, simulated': simulatedV2,
}

const children: ChildProcess[] = []
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

describe.each(Object.entries(KINDS))('control groups %s', (_, open) => {
  test.skipIf(!open)('a leaf from its birth to its removal', async () => {
    await using hierarchy = await (open as () => Promise<Hierarchy>)()
    const { cgroups } = hierarchy
    await cgroups.prepare()
    await cgroups.prepare()
    const leaf = cgroups.leaf('one')
    await leaf.create(LIMITS)
    await hierarchy.made(leaf)
    expect(await cgroups.list()).toEqual(['one'])
    await expect(leaf.create(LIMITS)).rejects.toMatchObject({ code: 'EEXIST' })
    expect(await leaf.evidence()).toMatchObject({ oomKills: 0, limitHit: false })
    expect((await leaf.evidence()).limitBytes).toBe(64 * MIB)
    await leaf.limit({ ...LIMITS, memoryBytes: 32 * MIB, cpus: 2 })
    expect((await leaf.evidence()).limitBytes).toBe(32 * MIB)
    await leaf.weigh(0.1)
    await leaf.resetPeak()
    expect(await leaf.heldUpMs()).toBe(0)
    expect(await leaf.processes()).toEqual([])
    const child = spawn('sleep', ['1000'])
    children.push(child)
    const gone = once(child, 'exit')
    await hierarchy.join(leaf, child)
    expect(await leaf.processes()).toEqual([child.pid])
    const { cpuMs, memoryBytes, memoryPeakBytes } = await leaf.usage()
    expect(Math.min(cpuMs, memoryBytes, memoryPeakBytes)).toBeGreaterThanOrEqual(0)
    expect(await leaf.remove(5)).toBe(false)
    expect(await leaf.kill(5_000)).toBe(true)
    await gone
    expect(child.signalCode).toBe('SIGKILL')
    expect(await leaf.remove(5_000)).toBe(true)
    expect(await leaf.remove(5)).toBe(true)
    expect(await leaf.kill(5)).toBe(true)
    expect(await leaf.processes()).toEqual([])
    expect(await leaf.evidence()).toMatchObject({ oomKills: 0, limitHit: false })
    expect(await cgroups.list()).toEqual([])
    await cgroups.dispose()
    await cgroups.dispose()
  })

  test.skipIf(!open)('one leaf is no part of another', async () => {
    await using hierarchy = await (open as () => Promise<Hierarchy>)()
    const { cgroups } = hierarchy
    await cgroups.prepare()
    const leaves = [cgroups.leaf('a'), cgroups.leaf('b')]
    for (const leaf of leaves) {
      await leaf.create(LIMITS)
      await hierarchy.made(leaf)
    }
    expect([...(await cgroups.list())].sort()).toEqual(['a', 'b'])
    const [a, b] = leaves as [CgroupLeaf, CgroupLeaf]
    expect(a.joinFiles.some((file) => b.joinFiles.includes(file))).toBe(false)
    await b.limit({ ...LIMITS, memoryBytes: 16 * MIB })
    expect((await a.evidence()).limitBytes).toBe(64 * MIB)
    for (const leaf of leaves) expect(await leaf.remove(5_000)).toBe(true)
    await cgroups.dispose()
  })
})

describe.skipIf(!detected)('the machine is out of memory, not the leaf', () => {
  test('what the kernel kills for a limit above it has not met its own', async () => {
    const cgroups = detected as Cgroups
    await cgroups.prepare()
    const leaf = cgroups.leaf(`innocent${process.pid}`)
    // Its cache of files is at its limit, which harms nobody.
    await leaf.create({ ...LIMITS, memoryBytes: 48 * MIB })
    const memory = leaf.directories.find((each) => each.includes('memory')) ?? leaf.directories[0]
    const above = join(memory ?? '', '..')
    const file = cgroups.version === 1 ? 'memory.limit_in_bytes' : 'memory.max'
    const large = join(await mkdtemp('/var/tmp/sandlot-suite-'), 'large')
    const fill = `head -c 100000000 /dev/zero >${large}; rm -r ${dirname(large)}`
    const child = spawn(
      '/bin/sh',
      ['-c', `read go; ${fill}; echo filled; read on; exec tail /dev/zero`],
      {
        stdio: ['pipe', 'pipe', 'ignore'],
      },
    )
    children.push(child)
    const gone = once(child, 'exit')
    for (const path of leaf.joinFiles) await writeFile(path, String(child.pid))
    child.stdin?.write('go\n')
    await once(child.stdout as Readable, 'data')
    expect((await leaf.evidence()).peakBytes).toBeGreaterThan(46 * MIB)
    await writeFile(join(above, file), String(24 * MIB))
    child.stdin?.end('on\n')
    await gone
    expect(child.signalCode).toBe('SIGKILL')
    expect(await leaf.evidence()).toMatchObject({ oomKills: 1, limitHit: false })
    expect(await leaf.remove(5_000)).toBe(true)
    await cgroups.dispose()
  })
})

function real(cgroups: Cgroups): Hierarchy {
  return {
    cgroups,
    made: async () => {},
    join: async (leaf, { pid }) => {
      for (const file of leaf.joinFiles) await writeFile(file, String(pid))
    },
    [Symbol.asyncDispose]: async () => {},
  }
}

/** A kernel in memory, which refuses what the real one does. */
async function simulatedV2(): Promise<Hierarchy> {
  const kernel = new KernelV2({ root: '/simulated' })
  return {
    cgroups: cgroupsV2('/simulated', 'p', kernel),
    made: async () => {},
    join: async (leaf, child) => {
      const { pid = 0 } = child
      kernel.place(leaf.directories[0] ?? '', { pid, kill: () => child.kill('SIGKILL') })
      child.once('exit', () => kernel.ended(pid))
    },
    [Symbol.asyncDispose]: async () => {},
  }
}

/** A directory of plain files for each controller. Empty leaves lose their files, as the kernel's do. */
async function simulatedV1(): Promise<Hierarchy> {
  const root = await mkdtemp(join(tmpdir(), 'sandlot-suite-'))
  const over = new AbortController()
  const mount = (name: string) => join(root, name)
  const mounts = {
    ...{ memory: mount('memory'), cpu: mount('cpu') },
    ...{ cpuacct: mount('cpu'), pids: mount('pids') },
  }
  for (const name of ['memory', 'cpu', 'pids']) await mkdir(mount(name))
  const empty = async (leaf: CgroupLeaf) => {
    for (const directory of leaf.directories) {
      for (const name of await readdir(directory).catch(() => []))
        await rm(join(directory, name), { force: true })
    }
  }
  // At once, as the kernel does it: the leaf may be removed as soon as one of them says that nothing lives.
  const state = (leaf: CgroupLeaf, pids: string) => {
    for (const file of leaf.joinFiles) writeFileSync(file, pids)
  }
  const plain: ControlIo = { ...kernelIo, write: (path, text) => writeFileSync(path, text) }
  return {
    cgroups: cgroupsV1(mounts, 'p', plain),
    made: async (leaf) => emptyWhenRemoved(leaf, over.signal, () => empty(leaf)),
    join: async (leaf, child) => {
      state(leaf, `${child.pid}\n`)
      child.once('exit', () => state(leaf, ''))
    },
    [Symbol.asyncDispose]: async () => {
      over.abort()
      await rm(root, { recursive: true, force: true })
    },
  }
}

/** Plain files would keep a directory from going. */
function emptyWhenRemoved(leaf: CgroupLeaf, signal: AbortSignal, empty: () => Promise<void>): void {
  const remove = leaf.remove.bind(leaf)
  Object.assign(leaf, {
    remove: async (timeoutMs: number) => {
      const lives = (await leaf.processes()).length > 0
      if (!lives && !signal.aborted) await empty().catch(() => {})
      return await remove(timeoutMs)
    },
  })
}
