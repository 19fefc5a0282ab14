import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type BuildStep, LIMITS } from '@sandlot/protocol'
import { type BuildBench, buildBench } from '@sandlot/testkit'
import { expect, test } from 'vitest'
import type { FakeCommand, FakeReply } from '../fake/script.ts'
import { imageLimits } from './limits.ts'
import { openImageStore } from './store.ts'

const members = [
  { path: 'bin/sh', content: 'shell', mode: 0o755 },
  { path: 'work/', mode: 0o755 },
]
const baseOf = (at: BuildBench) => ({ kind: 'tar', blob: at.tar(members) }) as const

/** Commands as text: `write PATH`, `fail`, `say TEXT`, `hang`. */
function shell(seen: FakeCommand[] = []) {
  return (command: FakeCommand): FakeReply => {
    seen.push(command)
    const [verb, argument = ''] = (command.argv.at(-1) ?? '').split(' ')
    if (verb === 'write') command.files.put(argument, `by ${command.argv.at(-1)}`)
    if (verb === 'say') return { stdout: `${argument}\nno newline`, stderr: 'and an error\n' }
    if (verb === 'fail') return { exitCode: 3, stdout: 'one\ntwo\n', stderr: 'it broke\n' }
    if (verb === 'hang') return { hangs: true }
    return {}
  }
}

const of = (name: string) => `\${${name}}`
const run = (command: string | string[]): BuildStep => ({ kind: 'run', command })

test('steps become layers and configuration, and run with what holds at them', async () => {
  const seen: FakeCommand[] = []
  await using at = await buildBench(shell(seen))
  const lines: string[] = []
  const image = await at.build(
    baseOf(at),
    [
      { kind: 'env', env: { A: '1', TOOLS: '/opt' } },
      {
        kind: 'env',
        env: { PATH: `${of('TOOLS')}/bin:${of('PATH')}`, COST: `$$5${of('NONE')}` },
        expand: true,
      },
      { kind: 'workdir', path: '/work' },
      run('write /made'),
      { kind: 'user', user: 'worker' },
      { kind: 'shell', command: ['/bin/bash', '-ec'] },
      { kind: 'run', command: 'say hello', env: { A: '2' }, network: 'none' },
      run(['say', 'direct']),
      { kind: 'labels', labels: { team: 'rl' } },
      { kind: 'command', entrypoint: ['/entry'], command: ['x'] },
      { kind: 'command', entrypoint: ['/other'] },
    ],
    (line) => lines.push(line),
  )
  expect(image.config).toEqual({
    env: {
      A: '1',
      TOOLS: '/opt',
      PATH: '/opt/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      COST: '$5',
    },
    workdir: '/work',
    user: 'worker',
    entrypoint: ['/other'],
    command: [],
    labels: { team: 'rl' },
  })
  expect((await at.layers(image))[0]).toContainEqual(
    expect.stringMatching(/^made file .* by write/),
  )
  expect(seen.map(({ argv, cwd, user, env }) => [argv, cwd, user, env.A, env.PROXY])).toEqual([
    [['/bin/sh', '-c', 'write /made'], '/work', 'root', '1', 'http://relay'],
    [['/bin/bash', '-ec', 'say hello'], '/work', 'worker', '2', 'http://relay'],
    [['say', 'direct'], '/work', 'worker', '1', 'http://relay'],
  ])
  expect(at.machines.map(({ network }) => network)).toEqual(['packages', 'none', 'packages'])
  expect(lines).toContain('step 7 of 11: run say hello')
  expect(lines).toContain('[7/11] hello')
  expect(lines).toContain('[7/11] no newline')
  expect(lines).toContain('[7/11] and an error')
  expect(at.driver.machine.size).toBe(0)
})

test('what is built is found at once, and a changed step builds what follows it alone', async () => {
  await using at = await buildBench(shell())
  const steps = [run('write /a'), run('write /b'), run('write /c')]
  const first = await at.build(baseOf(at), steps)
  const lines: string[] = []
  expect(await at.build(baseOf(at), steps, (line) => lines.push(line))).toEqual(first)
  expect([lines, at.machines.length]).toEqual([[], 3])
  const changed = [run('write /a'), run('write /b'), run('write /d')]
  await at.build(baseOf(at), changed, (line) => lines.push(line))
  expect(lines).toEqual(['steps 1 to 2 of 3 are built already', 'step 3 of 3: run write /d'])
  expect(at.machines.length).toBe(4)
  await at.build(baseOf(at), [run('write /b'), run('write /a')])
  expect(at.machines.length).toBe(6)
})

test('steps over steps are one list, whatever way they are written', async () => {
  await using at = await buildBench(shell())
  const base = baseOf(at)
  const inner = { kind: 'built', base, steps: [run('write /a')] } as const
  const nested = await at.build({ ...inner, steps: [...inner.steps] }, [run('write /b')])
  const flat = await at.build(base, [run('write /a'), run('write /b')])
  expect([flat.id, at.machines.length]).toEqual([nested.id, 2])
  const none = await at.store.build({ kind: 'built', base, steps: [], network: 'none' })
  expect(none.id).toBe((await at.store.build(base)).id)
})

test('steps on the way are no images that a list shows, until somebody asks for one', async () => {
  await using at = await buildBench(shell())
  const base = baseOf(at)
  const image = await at.build(base, [run('write /a'), run('write /b')])
  const listed = async () => (await at.store.list()).map(({ id }) => id)
  expect(await listed()).toHaveLength(2)
  const inner = await at.build(base, [run('write /a')])
  expect(await listed()).toContain(inner.id)
  expect((await at.store.find(image.id))?.intermediate).toBeUndefined()
})

test('a step that changes nothing leaves what it was made over an image that a list shows', async () => {
  await using at = await buildBench(shell())
  const base = await at.store.build(baseOf(at))
  const image = await at.build(baseOf(at), [run('true'), run('write /a')])
  expect((await at.store.list()).map(({ id }) => id)).toEqual([base.id, image.id])
  const same = await at.build(baseOf(at), [run('true')])
  expect(same.id).toBe(base.id)
})

test('a build over an image’s id begins at that image', async () => {
  await using at = await buildBench(shell())
  const base = await at.store.build(baseOf(at))
  const image = await at.build({ kind: 'id', id: base.id }, [run('write /a')])
  expect(image.layers.slice(0, 1)).toEqual(base.layers)
  expect(at.machines[0]?.image).toEqual(base)
  const missing = { kind: 'id', id: `im_${'a'.repeat(20)}` } as const
  await expect(at.build(missing, [run('write /a')])).rejects.toMatchObject({
    code: 'image_unknown',
  })
})

test('a step that fails says which, how, and its last lines; those before it stay', async () => {
  await using at = await buildBench(shell())
  const build = at.build(baseOf(at), [run('write /a'), run('fail hard'), run('write /c')])
  await expect(build).rejects.toMatchObject({
    code: 'image_build_failed',
    exitCode: 3,
    message: 'step 2 of 3 (run fail hard): the command ended with exit code 3:\none\ntwo\nit broke',
    logTail: ['one', 'two', 'it broke'],
  })
  expect(at.driver.machine.size).toBe(0)
  expect(await readdir(join(at.directory, 'tmp'))).toEqual([])
  await at.build(baseOf(at), [run('write /a'), run('write /b')])
  expect(at.machines.length).toBe(3)
})

test('a step that hangs ends with the last who waits for it', async () => {
  await using at = await buildBench(shell())
  const leaver = new AbortController()
  const source = { kind: 'built', base: baseOf(at), steps: [run('hang')] } as const
  const wait = {
    signal: leaver.signal,
    onLog: (line: string) =>
      line.startsWith('step 1') && queueMicrotask(() => leaver.abort(new Error('enough'))),
  }
  await expect(at.store.build({ ...source, steps: [...source.steps] }, wait)).rejects.toThrow(
    'enough',
  )
  expect(at.driver.machine.size).toBe(0)
  expect(await readdir(join(at.directory, 'tmp'))).toEqual([])
})

test('many who ask share each step, over two stores of one directory as well', async () => {
  await using at = await buildBench(shell())
  const other = await openImageStore({ directory: at.directory, openBlob: at.blobs.open })
  const steps = [run('write /a'), run('write /b')]
  const images = await Promise.all([
    ...Array.from({ length: 4 }, () => at.build(baseOf(at), steps)),
    at.build(baseOf(at), [...steps, run('write /c')]),
  ])
  expect(new Set(images.map(({ id }) => id)).size).toBe(2)
  expect(at.machines.length).toBe(3)
  const found = await other.build({ kind: 'built', base: baseOf(at), steps })
  expect(found.id).toBe(images[0]?.id)
  await other[Symbol.asyncDispose]()
})

test('an image of more steps than a sandbox can have layers has few of them, and the same files', async () => {
  await using at = await buildBench(shell())
  const count = imageLimits.layersMax + 3
  const steps = Array.from({ length: count }, (_, n): BuildStep => {
    const blob = at.tar([
      { path: `f${n}`, content: `${n}` },
      { path: 'last', content: `${n}` },
    ])
    return { kind: 'copy', blob, to: '/' }
  })
  const lines: string[] = []
  const image = await at.build(baseOf(at), steps, (line) => lines.push(line))
  // The last of them lie over what was joined.
  expect(image.layers.length).toBeLessThan(imageLimits.layersKept + 6)
  expect(lines.filter((line) => /joining \d+ layers into one/.test(line))).toHaveLength(1)
  const shown = (await at.layers(image)).flat()
  expect(shown.filter((line) => /^f\d/.test(line))).toHaveLength(count)
  expect(shown.findLast((line) => line.startsWith('last '))).toMatch(new RegExp(` ${count - 1}$`))
  expect(await at.build(baseOf(at), steps)).toEqual(image)
})

test('an output without an end is cut', async () => {
  const line = `${'x'.repeat(1000)}\n`
  await using at = await buildBench(() => ({ stdout: line.repeat(20_000) }))
  let sizeBytes = 0
  const lines: string[] = []
  await at.build(baseOf(at), [run('shout')], (each) => {
    sizeBytes += each.length
    lines.push(each)
  })
  expect(sizeBytes).toBeLessThan(imageLimits.stepLogBytesMax + 1_000_000)
  expect(lines).toContainEqual(expect.stringMatching(/of the rest the end is shown/))
})

test('sources that lie too deep in one another are refused', async () => {
  await using at = await buildBench()
  let source: unknown = baseOf(at)
  for (let depth = 0; depth < 100_000; depth++) source = { kind: 'built', base: source, steps: [] }
  await expect(at.store.build(source as never)).rejects.toMatchObject({
    code: 'image_source_invalid',
    message: expect.stringContaining(`${LIMITS.sourceDepth} deep`),
  })
})

test('the keys of bases are those that they always were', async () => {
  await using at = await buildBench()
  await at.store.build(baseOf(at))
  const [name = ''] = await readdir(join(at.directory, 'keys'))
  const text = JSON.stringify([1, 'tar', baseOf(at).blob])
  expect(name).toBe(`${createHash('sha256').update(text).digest('hex')}.json`)
  expect(JSON.parse(await readFile(join(at.directory, 'keys', name), 'utf8')).image).toMatch(/^im_/)
})

test('intermediate results can be collected; what was asked for stays, and so do its layers', async () => {
  await using at = await buildBench(shell())
  const steps = [run('write /a'), run('write /b')]
  const image = await at.build(baseOf(at), steps)
  expect((await at.store.collectIntermediate()).images).toHaveLength(1)
  expect(await at.store.verify(image.id)).toEqual([])
  expect(await at.build(baseOf(at), steps)).toEqual(image)
  await at.store.collect(0)
  expect(await readdir(join(at.directory, 'layers'))).toEqual([])
  expect(await readdir(join(at.directory, 'keys'))).toEqual([])
})
