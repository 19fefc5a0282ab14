import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import type { CgroupLeaf, Cgroups } from './cgroups.ts'
import { detectCgroups } from './detect.ts'
import { cgroupsV2 } from './v2.ts'

// The kernel's own control groups, whichever this machine has.
const parent = `sandlot-test-${process.pid}`
const isRoot = process.getuid?.() === 0
const detected = isRoot ? detectCgroups(parent) : undefined
const unified = '/sys/fs/cgroup/unified'
const hasUnified = isRoot && existsSync(`${unified}/cgroup.procs`)
const reason = 'needs root and cgroups with memory, cpu and pids'

const children: ChildProcess[] = []
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

async function spawnInto(leaf: CgroupLeaf, script: string): Promise<ChildProcess> {
  const child = spawn('/bin/sh', ['-c', `read go; ${script}`], {
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  children.push(child)
  for (const file of leaf.joinFiles) await writeFile(file, String(child.pid))
  child.stdin?.end('go\n')
  return child
}

describe.skipIf(!detected)(
  `cgroups of this machine (${detected ? `v${detected.version}` : reason})`,
  () => {
    const cgroups = detected as Cgroups
    const limits = { memoryBytes: 16 * 2 ** 20, cpus: 0.5, pidsMax: 32 }

    test('a leaf from its birth to its removal', async () => {
      await cgroups.prepare()
      const leaf = cgroups.leaf('birth')
      await leaf.create(limits)
      await spawnInto(leaf, 'sleep 1000 & sleep 1000 & wait')
      await expect.poll(async () => (await leaf.processes()).length).toBe(3)
      expect(await cgroups.list()).toContain('birth')
      await leaf.limit({ ...limits, memoryBytes: 8 * 2 ** 20 })
      expect((await leaf.evidence()).limitBytes).toBe(8 * 2 ** 20)
      expect((await leaf.usage()).memoryBytes).toBeGreaterThan(0)
      expect(await leaf.remove(5)).toBe(false)
      expect(await leaf.kill(5000)).toBe(true)
      expect(await leaf.remove(5000)).toBe(true)
      expect(await leaf.remove(5)).toBe(true)
      expect(await cgroups.list()).toEqual([])
      await cgroups.dispose()
    })

    test('what groups above leave of the memory', async () => {
      await cgroups.prepare()
      const leaf = cgroups.leaf('below')
      await leaf.create(limits)
      const ofMemory = leaf.directories.find((each) => each.includes('memory'))
      const above = join(ofMemory ?? leaf.directories[0] ?? '', '..')
      const file = cgroups.version === 1 ? 'memory.limit_in_bytes' : 'memory.max'
      await writeFile(join(above, file), String(64 * 2 ** 20))
      expect((await cgroups.memoryAbove()).limitBytes).toBe(64 * 2 ** 20)
      await spawnInto(leaf, "held=$(head -c 4000000 /dev/zero | tr '\\0' x); sleep 1000")
      await expect.poll(() => leaf.memoryBytes()).toBeGreaterThan(3e6)
      const availableBytes = async () => (await cgroups.memoryAbove()).availableBytes
      await expect.poll(availableBytes).toBeLessThan(64 * 2 ** 20 - 3e6)
      expect(await availableBytes()).toBeGreaterThan(32 * 2 ** 20)
      expect(await leaf.kill(5000)).toBe(true)
      expect(await leaf.remove(5000)).toBe(true)
      await cgroups.dispose()
    })

    test('a program over the limit is killed, with evidence', async () => {
      await cgroups.prepare()
      const leaf = cgroups.leaf('oom')
      await leaf.create(limits)
      const child = await spawnInto(leaf, 'exec tail /dev/zero')
      await once(child, 'exit')
      expect(child.signalCode).toBe('SIGKILL')
      const { oomKills, limitHit, peakBytes } = await leaf.evidence()
      expect({ oomKills, limitHit }).toEqual({ oomKills: 1, limitHit: true })
      expect(peakBytes).toBeGreaterThan(15 * 2 ** 20)
      expect(await leaf.remove(5000)).toBe(true)
      await cgroups.dispose()
    })
  },
)

describe.skipIf(!hasUnified)(
  'cgroup.kill of a real cgroup2 (where it is mounted beside v1)',
  () => {
    test('ends a tree at once', async () => {
      const leaf = cgroupsV2(unified, '').leaf(parent)
      await mkdir(leaf.directories[0] ?? '')
      await spawnInto(leaf, 'setsid sleep 1000 & sleep 1000 & wait')
      await expect.poll(async () => (await leaf.processes()).length).toBe(3)
      expect(await leaf.kill(5000)).toBe(true)
      expect(await leaf.remove(5000)).toBe(true)
    })
  },
)
