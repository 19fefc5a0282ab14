import { isUtf8 } from 'node:buffer'
import type { execAnswer } from '@sandlot/protocol'
import { argvOf, newId, SandlotError } from '@sandlot/protocol'
import type { ExecHandle } from '@sandlot/runtime'
import type { z } from 'zod'
import type { BytesAnswer, Call, Handlers } from '../http/call.ts'
import { idFromKey } from '../id-from-key.ts'
import type { Node } from '../node/node.ts'
import type { NodeExecEnd } from '../node/port.ts'
import { commandText } from './command-text.ts'
import { ExecAnswers } from './exec-answers.ts'
import { lendFor, streamOut, withSandbox } from './use.ts'

type ExecRoutes = 'runExec' | 'listExecs' | 'killExec' | 'resizeExec' | 'readLog'
type ExecAnswer = z.input<typeof execAnswer>

/** Commands over plain HTTP. */
export function execHandlers(
  node: Node,
  clock: { now(): number },
  /** Told how long a command took beside itself. */
  onOverhead: (elapsedMs: number) => void = () => {},
): Pick<Handlers, ExecRoutes> {
  const answers = new ExecAnswers<ExecAnswer>()
  return {
    runExec: async (call) => {
      const startedMs = performance.now()
      const answer = await runKeyed(node, call, answers)
      onOverhead(Math.max(0, performance.now() - startedMs - answer.durationMs))
      return answer
    },
    listExecs: (call) =>
      withSandbox(node, call, async ({ guest }) => {
        const execs = await guest.exec.list({ signal: call.signal })
        const items = execs.map(({ command, cut, startedMs, terminal = null, ...listing }) => ({
          ...listing,
          terminal,
          command: commandText(command, cut),
          startedAtMs: clock.now() - startedMs,
        }))
        return { items, next: null }
      }),
    killExec: (call) =>
      withSandbox(node, call, ({ guest }) =>
        guest.exec.kill(execIdOf(call.params.exec), call.body.signal ?? 9, { signal: call.signal }),
      ),
    resizeExec: (call) =>
      withSandbox(node, call, async ({ guest }) => {
        await guest.exec.resize(execIdOf(call.params.exec), call.body, { signal: call.signal })
        return call.body
      }),
    readLog: (call) => readLog(node, call),
  }
}

async function runKeyed(
  node: Node,
  call: Call<'runExec'>,
  answers: ExecAnswers<ExecAnswer>,
): Promise<ExecAnswer> {
  const { idempotencyKey: key, caller, params, body } = call
  if (key === undefined) return await run(node, call, newId('exec'), false)
  const exec = idFromKey('exec', caller.project, key)
  const digest = JSON.stringify([params.id, body])
  return await answers.once(
    `${caller.project}/${key}`,
    digest,
    () => run(node, call, exec, true),
    ({ stdoutText, stderrText }) => digest.length + 2 * (stdoutText.length + stderrText.length),
  )
}

async function run(
  node: Node,
  call: Call<'runExec'>,
  exec: string,
  keep: boolean,
): Promise<ExecAnswer> {
  const { body, params } = call
  // The lending ends with the command, also when its client left before.
  return await withSandbox(node, { ...call, signal: NEVER }, async (lent) => {
    // Without a key nobody can come back for the result: what has not begun stays so, and what has is killed.
    const onGone = () => void lent.guest.exec.kill(exec, 9).catch(() => {})
    if (!keep) call.signal.addEventListener('abort', onGone, { once: true })
    try {
      const request = {
        sandbox: params.id ?? '',
        exec,
        argv: argvOf(body.command),
        ...(body.env ? { env: body.env } : {}),
        ...(body.cwd === undefined ? {} : { cwd: body.cwd }),
        ...(body.user === undefined ? {} : { user: body.user }),
        ...(body.timeout === undefined ? {} : { timeoutMs: body.timeout }),
        ...(body.stdinBase64 === undefined
          ? {}
          : { stdin: Buffer.from(body.stdinBase64, 'base64') }),
      }
      const how = keep ? { keep } : { keep, unless: call.signal }
      return answerOf(await node.commands.run(lent, request, how))
    } finally {
      call.signal.removeEventListener('abort', onGone)
    }
  })
}

const NEVER = new AbortController().signal

function answerOf(end: NodeExecEnd): ExecAnswer {
  const { exec, exitCode, signal, timedOut, killed, durationMs, left, limits } = end
  const stdout = Buffer.from(end.stdout)
  const stderr = Buffer.from(end.stderr)
  return {
    exec,
    exitCode,
    signal,
    timedOut,
    killed,
    durationMs,
    left,
    limits,
    stdout: { totalBytes: end.stdoutTotalBytes, droppedBytes: end.stdoutDroppedBytes },
    stderr: { totalBytes: end.stderrTotalBytes, droppedBytes: end.stderrDroppedBytes },
    stdoutText: stdout.toString(),
    stderrText: stderr.toString(),
    ...(isUtf8(stdout) ? {} : { stdoutBase64: stdout.toString('base64') }),
    ...(isUtf8(stderr) ? {} : { stderrBase64: stderr.toString('base64') }),
  }
}

/** An id of the agent's own rules; anything else names no command. */
export function execIdOf(text: string | undefined): string {
  if (text !== undefined && /^[A-Za-z0-9_-]{1,64}$/.test(text)) return text
  const shown = JSON.stringify((text ?? '').slice(0, 64))
  throw new SandlotError('exec_unknown', `${shown} is not the id of a command`)
}

async function readLog(node: Node, call: Call<'readLog'>): Promise<BytesAnswer> {
  const exec = execIdOf(call.params.exec)
  const lent = await lendFor(node, call)
  const body = streamOut(lent, async ({ guest }) => {
    const { signal } = call
    const listed = await guest.exec.list({ signal })
    const running = listed.some((each) => each.exec === exec && each.running)
    const handle = guest.exec.attach(exec, { stdoutFrom: 0, stderrFrom: 0 }, { signal })
    await handle.started
    return held(handle, call.query.channel, running)
  })
  return { body }
}

/** A command that runs says no more for so long: what its rings held has been read. */
const QUIET_MS = 250

async function* held(
  handle: ExecHandle,
  channel: 'stdout' | 'stderr' | undefined,
  running: boolean,
): AsyncGenerator<Uint8Array> {
  const quiet = running ? setTimeout(() => handle.detach(), QUIET_MS) : undefined
  handle.result.catch(() => {})
  try {
    for await (const chunk of handle.output) {
      quiet?.refresh()
      if (channel === undefined || chunk.channel === channel) yield chunk.bytes
    }
  } catch (error) {
    if (!running) throw error
  } finally {
    clearTimeout(quiet)
    handle.detach()
  }
}
