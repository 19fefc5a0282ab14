import { Image, type Sandbox } from 'sandlot'
import { expect, test } from 'vitest'
import { allProcesses, childrenOf, commandOf } from './harness/processes.ts'
import { story } from './harness/story.ts'
import { seenUnderWay } from './harness/under-way.ts'
import { until } from './harness/until.ts'

const MIB = 2 ** 20
/** From the start of the next daemon until it serves; each phase leaves a handful of sandboxes at the most. */
const RECOVERS_WITHIN_MS = 20_000

await story('SIGKILL of everything', { pool: 1 }, (given) => {
  const create = (options: object = {}) =>
    given.client.sandboxes.create({ from: given.image, ...options })
  const hostsOf = (name: string) =>
    allProcesses().filter((pid) => {
      const command = commandOf(pid)
      return command.includes(given.daemon.runDirectory) && command.split(' ')[0]?.includes(name)
    })
  const helpers = () =>
    childrenOf(given.daemon.pid).filter((pid) => commandOf(pid).includes('sandlot-helper'))
  /** Commands of the runtime that are under way, and neither a sandbox nor what serves it files. */
  const commands = () =>
    hostsOf('runsc').filter((pid) => !/^(\S*\/)?runsc-(sandbox|gofer)\b/.test(commandOf(pid)))
  const end = (pids: readonly number[]) => {
    for (const pid of pids) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // It has just ended.
      }
    }
  }
  const killEverything = async () => {
    const peers = [...helpers(), ...commands()]
    await given.daemon.kill()
    end([...peers, ...commands()])
  }
  const restart = async () => {
    const startedMs = performance.now()
    await given.daemon.start()
    expect(performance.now() - startedMs).toBeLessThan(RECOVERS_WITHIN_MS)
  }
  /** What is on the machine is what is listed and what waits, and the bystander is as it was. */
  const expectInLine = async (bystander: Sandbox) => {
    expect((await bystander.exec('cat /kept')).stdout).toBe('kept')
    const listed = await Array.fromAsync(given.client.sandboxes.list({ state: 'running' }))
    expect(listed.map(({ id }) => id)).toEqual([bystander.id])
    await until('nothing but it and a blank is on the machine', async () => {
      const owned = await given.daemon.ownedIds()
      const all = await given.daemon.hostIds()
      return owned.length === 1 && all.length <= 2
    })
  }

  const waited = (ms: number) => new Promise<void>((done) => setTimeout(done, ms))

  const startUnderWay = () =>
    seenUnderWay(
      () => create({ checkpointable: true }),
      () => commands().length > 0,
      (sandbox) => sandbox.stop(),
    )

  /** The work of each phase. It says itself when the moment of the kill has come. */
  const phases: Record<string, (moment: () => void) => Promise<unknown>> = {
    'a cold create': async (moment) => {
      const { work } = await startUnderWay()
      moment()
      await stopped(work)
    },
    'a checkout': async (moment) => {
      const creating = create()
      creating.catch(() => {})
      await waited(5)
      moment()
      await stopped(creating)
    },
    'a command': async (moment) => {
      const sandbox = await create()
      const running = sandbox.exec('touch /begun; sleep 1; exit 3')
      running.catch(() => {})
      await until('it runs', async () =>
        (await sandbox.files.list('/')).some(({ name }) => name === 'begun'),
      )
      moment()
      expect((await running).exitCode).toBe(3)
      await sandbox.stop()
    },
    'an upload': async (moment) => {
      const sandbox = await create()
      const content = Buffer.alloc(64 * MIB, 'x')
      const writing = sandbox.files.write('/tmp/large', content)
      writing.catch(() => {})
      await waited(50)
      moment()
      await writing
      expect((await sandbox.exec('stat -c %s /tmp/large')).stdout).toBe(`${64 * MIB}\n`)
      await sandbox.stop()
    },
    'a grader': async (moment) => {
      const begin = () =>
        given.client.rollouts
          .map([{ id: 'a' }], async () => {}, {
            ...{ from: given.image, name: `graded-${performance.now()}`, concurrency: 1 },
            grade: { run: ['sh', '-c', 'sleep 2'] },
          })
          .wait()
      const isGraded = async () => {
        const runs = await Array.fromAsync(given.client.rollouts.list())
        return runs.some(({ counts }) => counts.grading > 0)
      }
      const { work } = await seenUnderWay(begin, isGraded)
      moment()
      expect(await work).toMatchObject([{ outcome: 'graded', reward: 1 }])
    },
    'a step of an image': async (moment) => {
      const begin = () =>
        given.client.images
          .build(Image.fromId(given.image).run(`sleep 2; echo ${performance.now()} > /step`))
          .catch((error) => expect(error).toMatchObject({ code: 'connection_lost' }))
      const isThere = async () => (await given.daemon.ownedIds()).length === 2
      const { work } = await seenUnderWay(begin, isThere)
      moment()
      await work
    },
    'a teardown': async (moment) => {
      const sandboxes = await Promise.all(Array.from({ length: 3 }, () => create()))
      const stopping = Promise.all(sandboxes.map((sandbox) => sandbox.stop()))
      stopping.catch(() => {})
      await waited(5)
      moment()
      await stopping
    },
  }

  test.each(Object.keys(phases))(
    'in the middle of %s leaves nothing, and what was asked for comes about',
    async (phase) => {
      const work = phases[phase]
      if (!work) throw new Error(`no phase ${phase}`)
      await using bystander = await create()
      await bystander.files.write('/kept', 'kept')
      const moment = Promise.withResolvers<void>()
      const working = work(moment.resolve)
      // It is waited for below, where it hasn't failed before the kill.
      working.catch(moment.reject)
      await moment.promise
      await killEverything()
      await restart()
      await working
      await expectInLine(bystander)
    },
  )

  test('of the host helper costs no sandbox, and the next start has another one', async () => {
    await using before = await create()
    const killed = helpers()
    end(killed)
    // The daemon has taken note of it by then.
    await until('it is gone', () => killed.every((pid) => !allProcesses().includes(pid)))
    await using after = await create()
    for (const sandbox of [before, after]) {
      expect((await sandbox.exec('echo alive')).stdout).toBe('alive\n')
    }
    // One that was taken from the pool needs none: who comes in its place does.
    await until('there is another one', () => helpers().length === 1)
  })

  test('of commands of the runtime in flight fails or delays a start, and leaves nothing of it', async () => {
    await using bystander = await create()
    await bystander.files.write('/kept', 'kept')
    const { work } = await startUnderWay()
    end(commands())
    const started = await work.catch((error) => {
      expect(error).toMatchObject({ code: 'create_failed', retry: true })
    })
    await started?.stop()
    await stopped(create({ checkpointable: true }))
    await expectInLine(bystander)
  })

  /** Processes of this name that came with a sandbox that was created just now. */
  const broughtBy = async (name: string, options: object) => {
    const before = new Set(hostsOf(name))
    const sandbox = await create({ checkpointable: true, ...options })
    const own = hostsOf(name).filter((pid) => !before.has(pid))
    if (own.length === 0) throw new Error(`it has no ${name}`)
    return { sandbox, own }
  }

  test('of the kernel of a sandbox ends that one alone, and says so', async () => {
    await using bystander = await create()
    await bystander.files.write('/kept', 'kept')
    const { sandbox, own } = await broughtBy('runsc-sandbox', {})
    const running = sandbox.exec('sleep 100')
    running.catch(() => {})
    end(own)
    await expect(running).rejects.toMatchObject({ code: 'sandbox_lost' })
    expect((await sandbox.view()).ending).toMatchObject({ kind: 'lost' })
    await expectInLine(bystander)
  })

  test('of what brings a sandbox its disk ends no other, and nothing of it is left', async () => {
    await using bystander = await create()
    await bystander.files.write('/kept', 'kept')
    const resources = { memory: '256MiB', disk: '1GiB' }
    const { sandbox, own } = await broughtBy('runsc-gofer', { resources })
    end(own)
    // It has its file open already: it goes on, or is told to be lost, but it doesn't hang.
    const wrote = await sandbox.exec('echo more > /more && cat /more').catch((error) => {
      expect(error).toMatchObject({ code: 'sandbox_lost' })
    })
    if (wrote) expect(wrote).toMatchObject({ exitCode: 0, stdout: 'more\n' })
    await sandbox.stop()
    await expectInLine(bystander)
  })
})

async function stopped(creating: Promise<Sandbox>): Promise<void> {
  await (await creating).stop()
}
