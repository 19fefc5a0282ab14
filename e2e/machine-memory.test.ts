/**
 * A machine that has too little memory, played by a limit of the group in which all sandboxes of a daemon are: over it the kernel
 * ends one of them for the sake of all, and the rest of the machine notices nothing.
 */
import type { EpisodeContext, Sandbox, SandboxOptions } from 'sandlot'
import { describe, expect, test } from 'vitest'
import { runCommand } from './harness/command.ts'
import { EAT_AT_ONCE, EAT_SLOWLY } from './harness/shells.ts'
import { story } from './harness/story.ts'
import { until } from './harness/until.ts'

const MIB = 2 ** 20
/** So much is all that there is. */
const MACHINE_BYTES = 208 * MIB

const environment = { SANDLOT_MEMORY_FREE: '16MiB' }

await story('a machine without memory', { pool: 0, environment }, (given) => {
  const resources = { memory: { request: '20MiB', limit: '512MiB' }, disk: '32MiB', pids: 32 }
  const create = (options: Partial<SandboxOptions> = {}): Promise<Sandbox> =>
    given.client.sandboxes.create({ from: given.image, resources, ...options })
  /** The machine has so much from now on, until disposed. */
  const machineOf = async (bytes: number) => {
    await given.daemon.limitMachine(bytes)
    return { [Symbol.asyncDispose]: () => given.daemon.limitMachine(undefined) }
  }

  test('ends who takes the most, and says that it was not its own limit', async () => {
    await using neighbour = await create()
    const hog = await create()
    const modest = await create({ resources: { memory: '96MiB', disk: '16MiB' } })
    await using _ = await machineOf(MACHINE_BYTES)
    // Over its own limit, which the machine could give: that is told apart.
    const greed = await modest.exec(EAT_AT_ONCE).catch((thrown) => thrown)
    expect(greed).toMatchObject({ code: 'sandbox_gone', fault: 'workload' })
    expect((await modest.view()).ending).toMatchObject({ kind: 'oom_limit' })

    const error = await hog.exec(EAT_SLOWLY).catch((thrown) => thrown)
    expect(error).toMatchObject({ code: 'sandbox_lost', fault: 'platform' })
    const { state, ending, usage } = await hog.view()
    expect({ state, ending }).toMatchObject({
      state: 'stopped',
      ending: { kind: 'oom_host', detail: expect.stringMatching(/oom_kill \d.*was not hit/) },
    })
    expect(usage?.memoryPeakBytes).toBeGreaterThan(64 * MIB)
    expect(usage?.memoryPeakBytes).toBeLessThan(MACHINE_BYTES)
    expect(await neighbour.exec('echo on')).toMatchObject({ stdout: 'on\n' })
  })

  describe('makes an episode', () => {
    const eatAtFirst = async ({ sandbox, attempt }: EpisodeContext<{ id: string }>) => {
      if (attempt === 1) await sandbox.exec(EAT_SLOWLY)
    }
    const play = (infra: number) =>
      given.client.rollouts.map([{ id: 'hungry' }], eatAtFirst, {
        ...{ from: given.image, resources, retry: { infra } },
        grade: { run: async () => 1 },
      })

    test('one that is tried again: its first attempt was nobody’s fault', async () => {
      await using _ = await machineOf(MACHINE_BYTES)
      await using run = play(1)
      const [row] = await run.wait()
      expect(row).toMatchObject({ outcome: 'graded', reward: 1 })
      expect(row?.attempts.map(({ outcome }) => outcome)).toEqual(['infra_lost', 'graded'])
    })

    test('lost without a reward, where it is not tried again', async () => {
      await using _ = await machineOf(MACHINE_BYTES)
      await using run = play(0)
      const [row] = await run.wait()
      expect(row).toMatchObject({ outcome: 'infra_lost', reward: null })
      expect(row?.cause.join()).toContain('the machine ran out of memory')
    })
  })

  test('promises nobody what it has not got, and goes on when there is some', async () => {
    const asking = { memory: { request: '100MiB', limit: '512MiB' }, disk: '32MiB' }
    await using narrow = await machineOf(MACHINE_BYTES)
    await until('it is seen', async () => {
      const { load } = await given.client.health()
      return load?.memory.total === MACHINE_BYTES
    })
    await using first = await create({ resources: asking })
    await expect(create({ resources: asking })).rejects.toMatchObject({
      ...{ code: 'capacity', fault: 'capacity', retry: true },
      message: expect.stringMatching(/100 MiB are asked for, the machine has .* of memory left/),
      hint: expect.stringContaining('SANDLOT_MEMORY_FREE'),
    })
    // Who asks for little has room.
    await using small = await create()
    expect(await small.exec('echo in')).toMatchObject({ stdout: 'in\n' })
    const { load } = await given.client.health()
    expect(load).toMatchObject({
      sandboxes: 2,
      memory: { requests: 120 * MIB, limits: 1024 * MIB, kept: 16 * MIB },
      overcommit: { memory: 4.92 },
    })
    const doctor = await runCommand(['doctor'], { environment: given.daemon.environment })
    expect(doctor.stdout).toMatch(/promises .*120 MiB.*limits 1 GiB \(4.92 × the memory\)/)

    await using run = given.client.rollouts.map([{ id: 'waits' }], async () => {}, {
      ...{ from: given.image, resources: asking, grade: { run: async () => 1 } },
    })
    await until('it waits for room', async () => {
      const metrics = await (await fetch(`${given.daemon.url}/metrics`)).text()
      return /^sandlot_room_waiting 1$/m.test(metrics)
    })
    await narrow[Symbol.asyncDispose]()
    const [row] = await run.wait()
    expect(row).toMatchObject({ outcome: 'graded', reward: 1 })
    expect(await first.exec('echo on')).toMatchObject({ stdout: 'on\n' })
  })
})
