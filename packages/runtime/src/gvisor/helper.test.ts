import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, readlinkSync } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { temporaryDirectory } from '@sandlot/testkit'
import { describe, expect, test } from 'vitest'
import { gvisorOptions } from '../config.ts'
import { HostHelper } from './helper.ts'

const { helper: program } = gvisorOptions()
const built = existsSync(program)

/** A helper with FIFOs, and a launch of any program in the runtime's place. */
async function setup() {
  const directory = await temporaryDirectory()
  const path = (name: string) => join(directory.path, name)
  const helper = new HostHelper(program)
  const launch = (argv: readonly string[], deadlineMs = 60_000) =>
    helper.launch({
      in: path('in'),
      out: path('out'),
      pipeBytes: 2 ** 20,
      stderr: path('stderr'),
      log: path('log'),
      cgroupProcs: [],
      argv,
      pidFile: path('pid'),
      controlSocket: path('control'),
      container: 'c',
      start: true,
      deadlineMs,
    })
  await helper.fifos({ in: path('in'), out: path('out') })
  return {
    helper,
    launch,
    path,
    [Symbol.asyncDispose]: async () => {
      await helper.close()
      await directory[Symbol.asyncDispose]()
    },
  }
}

describe.skipIf(!built)(`the host helper${built ? '' : `: ${program} is not built`}`, () => {
  test('makes FIFOs that only their owner can open', async () => {
    await using each = await setup()
    const { mode } = await stat(each.path('in'))
    expect((mode & 0o777).toString(8)).toBe('600')
    const again = each.helper.fifos({ in: each.path('in'), out: each.path('out') })
    await expect(again).rejects.toMatchObject({ stage: 'fifos' })
  })

  test('gives a program its three descriptors and nothing else', async () => {
    await using each = await setup()
    const hanging = each.launch(['/bin/sleep', '1000'], 60_000)
    hanging.catch(() => {})
    const asleep = async () =>
      (await childrenOf(each.helper.pid)).find(({ name }) => name === 'sleep')
    await expect.poll(asleep).toBeDefined()
    const pid = (await asleep())?.pid ?? ''
    const open = (await readdir(`/proc/${pid}/fd`)).map((fd) =>
      readlinkSync(`/proc/${pid}/fd/${fd}`),
    )
    expect(open).toEqual(['in', 'out', 'stderr'].map(each.path))
    expect(await readFile(`/proc/${pid}/environ`, 'utf8')).toBe('')
    process.kill(Number(pid), 'SIGKILL')
    await expect(hanging).rejects.toMatchObject({ stage: 'create' })
  })

  test('a runtime that is asked is waited for also where the helper was stopped meanwhile', async () => {
    await using each = await setup()
    const asked = Promise.withResolvers<Socket>()
    await using server = createServer((socket) => socket.once('data', () => asked.resolve(socket)))
    server.listen(each.path('control'))
    await once(server, 'listening')
    const held = each.helper.hold({
      ...{ controlSocket: each.path('control'), sentryPid: 2 ** 30, deadlineMs: 60_000 },
    })
    const socket = await asked.promise
    const pid = each.helper.pid as number
    const stateOf = async () =>
      /^State:\s+(\S)/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]
    process.kill(pid, 'SIGSTOP')
    await expect.poll(stateOf).toBe('T')
    process.kill(pid, 'SIGCONT')
    await expect.poll(stateOf).toBe('S')
    socket.end(JSON.stringify({ success: true, result: null }))
    await held
  })

  test('what it holds ends with it, and what it was asked to let go goes on', async () => {
    await using each = await setup()
    const letGo = Promise.withResolvers<Socket>()
    const answer = JSON.stringify({ success: true, result: null })
    await using server = createServer((socket) => {
      let said = ''
      socket.on('data', (bytes) => {
        said += bytes
        if (said.includes('Pause')) socket.end(answer)
        if (said.includes('Resume')) letGo.resolve(socket)
      })
    })
    server.listen(each.path('control'))
    await once(server, 'listening')
    const [held, going] = [spawn('/bin/sleep', ['1000']), spawn('/bin/sleep', ['1000'])]
    const of = ({ pid: sentryPid = 0 }) => ({
      ...{ controlSocket: each.path('control'), sentryPid, deadlineMs: 60_000 },
    })
    const ended = [held, going].map((child) => once(child, 'exit'))
    await each.helper.hold(of(held))
    await each.helper.hold(of(going))
    each.helper.letGo(of(going)).catch(() => {})
    // Its input ends while the runtime still works.
    const closed = each.helper.close()
    expect(await ended[0]).toEqual([null, 'SIGKILL'])
    const socket = await letGo.promise
    socket.end(answer)
    await closed
    expect(going.signalCode).toBeNull()
    going.kill()
    await ended[1]
  })

  test('what it was to hold when its input ended is ended too', async () => {
    await using each = await setup()
    // It says nothing: whoever asks waits.
    await using server = createServer((socket) => void socket.resume())
    server.listen(each.path('control'))
    await once(server, 'listening')
    const child = spawn('/bin/sleep', ['1000'])
    const ended = once(child, 'exit')
    const controlSocket = each.path('control')
    const request = { controlSocket, sentryPid: child.pid ?? 0, deadlineMs: 60_000 }
    each.helper.hold(request).catch(() => {})
    await each.helper.close()
    expect(await ended).toEqual([null, 'SIGKILL'])
  })

  test('tells the last words of what failed', async () => {
    await using each = await setup()
    const failure = each.launch(['/bin/sh', '-c', 'echo last words >&2; exit 3'])
    await expect(failure).rejects.toMatchObject({
      stage: 'create',
      message: expect.stringContaining('3'),
      log: 'last words\n',
    })
  })

  test('a program that hangs is killed at its deadline, with all that it started', async () => {
    await using each = await setup()
    const hang = `echo $$ > ${each.path('seen')}; sleep 1000 & echo $! >> ${each.path('seen')}; wait`
    await expect(each.launch(['/bin/sh', '-c', hang], 5_000)).rejects.toMatchObject({
      stage: 'create',
      message: expect.stringContaining('in time'),
    })
    const pids = (await readFile(each.path('seen'), 'utf8')).trim().split('\n')
    expect(pids).toHaveLength(2)
    await expect.poll(() => pids.filter((pid) => isRunning(pid))).toEqual([])
  })

  test('what launches leave behind is reaped once it is dead, and no launch misses its end', async () => {
    await using each = await setup()
    const leave = 'for n in 1 2 3; do setsid true & done; exit 3'
    for (let n = 0; n < 5; n++) {
      const launches = [1, 2, 3, 4].map(() => each.launch(['/bin/sh', '-c', leave]))
      const ended = Promise.allSettled(launches)
      await Promise.all([each.helper.reap(0), each.helper.reap(0)])
      for (const end of await ended) {
        expect(end).toMatchObject({ reason: { message: expect.stringContaining('3') } })
      }
    }
    const children = async () => {
      await each.helper.reap(0)
      return await childrenOf(each.helper.pid)
    }
    await expect.poll(children).toEqual([])
  })

  test('several launches run side by side', async () => {
    await using each = await setup()
    const ended = Promise.allSettled([1, 2, 3, 4].map(() => each.launch(['/bin/sleep', '1000'])))
    const asleep = async () =>
      (await childrenOf(each.helper.pid)).filter(({ name }) => name === 'sleep')
    await expect.poll(asleep).toHaveLength(4)
    for (const { pid } of await asleep()) process.kill(Number(pid), 'SIGKILL')
    await ended
  })

  test('a program that does not exist, and a control socket that does not', async () => {
    await using each = await setup()
    await expect(each.launch(['/nowhere'])).rejects.toMatchObject({ stage: 'spawn' })
    const start = each.launch(['/bin/sh', '-c', `echo 1 > ${each.path('pid')}`])
    await expect(start).rejects.toMatchObject({ stage: 'control' })
  })

  test('what it does not understand is an answer, not its end', async () => {
    await using each = await setup()
    const mount = { controlSocket: '/none', container: 'c', destination: '/', deadlineMs: 60_000 }
    await expect(each.helper.mount({ ...mount, source: '/nowhere' })).rejects.toMatchObject({
      stage: 'image',
    })
    await expect(
      each.helper.launch(JSON.parse('{"op":"nonsense","deadlineMs":60000}')),
    ).rejects.toMatchObject({ stage: 'request' })
  })

  test('a helper that dies fails what is under way, and is started again', async () => {
    await using each = await setup()
    const hanging = each.launch(['/bin/sleep', '1000'], 60_000)
    await expect.poll(() => each.helper.pid && isRunning(String(each.helper.pid))).toBe(true)
    process.kill(each.helper.pid ?? 0, 'SIGKILL')
    await expect(hanging).rejects.toMatchObject({ stage: 'helper' })
    await expect(each.launch(['/bin/false'])).rejects.toMatchObject({ stage: 'create' })
  })
})

async function childrenOf(pid: number | undefined): Promise<{ pid: string; name: string }[]> {
  const tasks = await readdir(`/proc/${pid}/task`)
  const lists = tasks.map((task) => readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8'))
  const pids = lists.flatMap((list) => list.trim().split(' ')).filter((each) => each !== '')
  return pids.map((each) => ({
    pid: each,
    name: readFileSync(`/proc/${each}/comm`, 'utf8').trim(),
  }))
}

/** Not counting what has died and was not yet reaped. */
function isRunning(pid: string): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}
