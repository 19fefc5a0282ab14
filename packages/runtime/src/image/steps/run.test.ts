import { type BuildStep, LIMITS } from '@sandlot/protocol'
import { buildBench } from '@sandlot/testkit'
import { expect, test } from 'vitest'
import type { FakeCommand, FakeReply } from '../../fake/script.ts'
import { openImageStore } from '../store.ts'

const members = [{ path: 'bin/sh', content: 'shell', mode: 0o755 }]
const long = `echo ${'x'.repeat(200_000)}`

function recorder(seen: FakeCommand[]) {
  return (command: FakeCommand): FakeReply => {
    seen.push(command)
    const script = command.files.bytes('/dev/shm/.sandlot/step.sh')
    command.files.put('/made', script ?? 'nothing')
    return {}
  }
}

test('a text that is too long for an argument is read by its shell from a file', async () => {
  const seen: FakeCommand[] = []
  await using at = await buildBench(recorder(seen))
  const base = { kind: 'tar', blob: at.tar(members) } as const
  const steps: BuildStep[] = [
    { kind: 'run', command: long },
    { kind: 'shell', command: ['/bin/bash', '-euo', 'pipefail', '-c'] },
    { kind: 'run', command: 'echo short' },
    { kind: 'run', command: `${long} 2` },
  ]
  await at.build(base, steps)
  const read = '. /dev/shm/.sandlot/step.sh'
  expect(seen.map(({ argv }) => argv)).toEqual([
    ['/bin/sh', '-c', read],
    ['/bin/bash', '-euo', 'pipefail', '-c', 'echo short'],
    ['/bin/bash', '-euo', 'pipefail', '-c', read],
  ])
  const made = seen.map(({ files }) => Buffer.from(files.bytes('/made') ?? []).toString())
  expect(made).toEqual([long, 'nothing', `${long} 2`])
})

test.each<[name: string, steps: BuildStep[], code: string, says: RegExp]>([
  [
    'a list',
    [{ kind: 'run', command: ['echo', 'x'.repeat(60_000)] }],
    'image_source_invalid',
    /steps\.0\.command .*longer than 49152 bytes/,
  ],
  [
    'a text without an end',
    [{ kind: 'run', command: 'x'.repeat(LIMITS.stepTextBytes) }],
    'image_source_invalid',
    /steps\.0\.command .*longer than 1048576 bytes/,
  ],
  [
    'a text for what is no shell',
    [
      { kind: 'shell', command: ['/usr/bin/python3', '-c'] },
      { kind: 'run', command: 'x'.repeat(100_000) },
    ],
    'image_build_failed',
    /^step 2 of 2 \(run x+…\): the command does not start: its arguments \(\d+ bytes\)/,
  ],
  [
    'an environment',
    [
      { kind: 'env', env: { A: 'x'.repeat(40_000) } },
      { kind: 'run', command: 'echo', env: { B: 'x'.repeat(40_000) } },
    ],
    'image_build_failed',
    /^step 2 of 2 \(run echo\): the command does not start: .* its environment \(80/,
  ],
])('%s that is too long is refused with its step and the limit', async (_, steps, code, says) => {
  await using at = await buildBench()
  const base = { kind: 'tar', blob: at.tar(members) } as const
  await expect(at.build(base, steps)).rejects.toMatchObject({
    code,
    message: expect.stringMatching(says),
  })
})

test('a step that hangs is ended in its time, and says so with its last lines', async () => {
  await using at = await buildBench(({ argv }) =>
    argv.at(-1) === 'hang' ? { hangs: true, stdout: 'so far\n' } : {},
  )
  const base = { kind: 'tar', blob: at.tar(members) } as const
  const build = at.build(base, [
    { kind: 'run', command: 'true' },
    { kind: 'run', command: 'hang', timeout: 1_000 },
  ])
  await expect(build).rejects.toMatchObject({
    code: 'image_build_failed',
    message: 'step 2 of 2 (run hang): the command did not end within 1s:\nso far',
    hint: expect.stringContaining('`timeout`'),
  })
  expect(at.driver.machine.size).toBe(0)
})

test('the time that a step may take is no part of what it is', async () => {
  const seen: FakeCommand[] = []
  await using at = await buildBench(recorder(seen))
  const base = { kind: 'tar', blob: at.tar(members) } as const
  const images = [
    await at.build(base, [{ kind: 'run', command: 'a' }]),
    await at.build(base, [{ kind: 'run', command: 'a', timeout: 5_000 }]),
  ]
  expect(new Set(images.map(({ id }) => id)).size).toBe(1)
  expect(seen).toHaveLength(1)
})

test('whoever has more time for a step does not fail with one that has less', async () => {
  const ends = Promise.withResolvers<void>()
  let runs = 0
  await using at = await buildBench(async () => {
    runs += 1
    if (runs === 1) return { hangs: true }
    await ends.promise
    return {}
  })
  const base = { kind: 'tar', blob: at.tar(members) } as const
  const hasty = at.build(base, [{ kind: 'run', command: 'slow', timeout: 1_000 }])
  hasty.catch(() => {})
  await expect.poll(() => runs).toBe(1)
  const patient = at.build(base, [{ kind: 'run', command: 'slow' }])
  await expect(hasty).rejects.toThrow(/did not end within 1s/)
  ends.resolve()
  expect(await patient).toMatchObject({ id: expect.any(String) })
  expect(runs).toBe(2)
})

test('a build goes on where the client that began it leaves', async () => {
  const [began, ends] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let runs = 0
  await using at = await buildBench(async () => {
    runs += 1
    began.resolve()
    await ends.promise
    return { stdout: 'the end\n' }
  })
  const steps: BuildStep[] = [{ kind: 'run', command: 'slow' }]
  const source = { kind: 'built', base: { kind: 'tar', blob: at.tar(members) }, steps } as const
  const leaver = new AbortController()
  const first = at.store.build(source, { signal: leaver.signal })
  await began.promise
  const lines: string[] = []
  const second = at.store.build(source, { onLog: (line) => lines.push(line) })
  // The second one has joined as soon as it is told of its step.
  await expect.poll(() => lines).toContain('step 1 of 1: run slow')
  leaver.abort(new Error('gone'))
  await expect(first).rejects.toThrow('gone')
  ends.resolve()
  expect(await second).toMatchObject({ id: expect.any(String) })
  expect([runs, lines.at(-1)]).toEqual([1, '[1/1] the end'])
})

test('a build of another process goes on where the first one is killed', async () => {
  const began = Promise.withResolvers<void>()
  let runs = 0
  const script = (): FakeReply => {
    runs += 1
    began.resolve()
    return runs === 1 ? { hangs: true } : {}
  }
  await using at = await buildBench(script)
  const steps: BuildStep[] = [{ kind: 'run', command: 'slow' }]
  const source = { kind: 'built', base: { kind: 'tar', blob: at.tar(members) }, steps } as const
  const first = at.store.build(source)
  first.catch(() => {})
  await began.promise
  await using other = await openImageStore({
    directory: at.directory,
    openBlob: at.blobs.open,
    openMachine: at.openMachine,
  })
  const second = other.build(source)
  // What is left of a process that is killed is its lock, which the kernel takes away.
  await at.store[Symbol.asyncDispose]()
  await expect(first).rejects.toThrow()
  expect(await second).toMatchObject({ id: expect.any(String) })
  expect(runs).toBe(2)
})

test('a step whose files take all that there is says so', async () => {
  await using at = await buildBench(({ files }) => {
    files.put('/large', Buffer.alloc(63.5 * 2 ** 20))
    return { exitCode: 1, stderr: 'No space left on device\n' }
  })
  const base = { kind: 'tar', blob: at.tar(members) } as const
  await expect(at.build(base, [{ kind: 'run', command: 'fill' }])).rejects.toMatchObject({
    message:
      'step 1 of 1 (run fill): the command ended with exit code 1 (its files took all of the 64 MiB that a step has for them):\nNo space left on device',
    hint: expect.stringContaining('write less in one step'),
  })
})
