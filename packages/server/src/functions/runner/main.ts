/**
 * Runs in the container, as the only process of its function: loads the module, then calls the handler for each input that comes by stdin.
 * It is copied there as it is, and imports what Node.js has, and what is copied beside it.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { fstatSync, readFileSync, unlinkSync, writeFileSync, writeSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import process, { argv, stderr, stdin, stdout } from 'node:process'
import { Readable } from 'node:stream'
import { inspect } from 'node:util'
// @ts-expect-error: of the daemon's own, copied beside this file under this name
import { plainJson } from './plain-json.mjs'

interface Call {
  readonly id: string
  readonly abort: AbortController
  /** What has no end of line yet, by channel. */
  readonly open: Record<Channel, string>
}

type Channel = 'stdout' | 'stderr'
type Handler = (input: unknown, context: object) => unknown

const [, , name = '', label = '', inline = '0', directory = ''] = argv
/** Comes first, and by stdin: every process of the container could read arguments and environment. */
let secret: string | undefined
const calls = new Map<string, Call>()
const current = new AsyncLocalStorage<Call>()
const LINE_CHARS_MAX = 16_384

const writeFrame = stdout.write.bind(stdout)
const outside: Record<Channel, string> = { stdout: '', stderr: '' }

function say(frame: object): void {
  writeFrame(`${secret}${JSON.stringify(frame)}\n`)
}

/** What is printed while a call runs is that call's. */
function printed(channel: Channel) {
  return (chunk: unknown, encoding?: unknown, done?: unknown): boolean => {
    const text = typeof chunk === 'string' ? chunk : Buffer.from(chunk as Uint8Array).toString()
    const call = current.getStore()
    const open = call?.open ?? outside
    const lines = (open[channel] + text).split('\n')
    open[channel] = lines.pop() ?? ''
    if (open[channel].length > LINE_CHARS_MAX) lines.push(open[channel].slice(0, LINE_CHARS_MAX))
    if (open[channel].length > LINE_CHARS_MAX) open[channel] = ''
    for (const line of lines) log(call, channel, line)
    const callback = typeof encoding === 'function' ? encoding : done
    if (typeof callback === 'function') queueMicrotask(() => callback())
    return true
  }
}

function log(call: Call | undefined, channel: Channel, line: string): void {
  say({ k: 'log', id: call?.id ?? null, channel, text: line.slice(0, LINE_CHARS_MAX) })
}

function flush(call: Call): void {
  for (const channel of ['stdout', 'stderr'] as const) {
    if (call.open[channel] !== '') log(call, channel, call.open[channel])
    call.open[channel] = ''
  }
}

stdout.write = printed('stdout') as typeof stdout.write
stderr.write = printed('stderr') as typeof stderr.write
keepOpen(stdout)
keepOpen(stderr)

/** Whoever ends it would end what the daemon is answered by. */
function keepOpen(stream: NodeJS.WritableStream & { destroy(): unknown }): void {
  stream.destroy = () => stream
  stream.end = ((chunk?: unknown, ...more: never[]) => {
    if (chunk instanceof Uint8Array || typeof chunk === 'string') stream.write(chunk, ...more)
    return stream
  }) as typeof stream.end
}

/** Inputs come by it: what the function itself may read, pause and destroy is another one, with nothing in it. */
const requests = stdin
Object.defineProperty(process, 'stdin', { value: Readable.from([]), configurable: true })
syncBuiltinESMExports()

const PIPES = { stdin: 0, stdout: 1 } as const
const PIPE_CHECK_MS = 1_000
const opened = { stdin: inodeOf(PIPES.stdin), stdout: inodeOf(PIPES.stdout) }

/** Without them nobody would ever hear of it again: it ends, and says on what is left to it why. */
function checkPipes(): void {
  for (const each of ['stdin', 'stdout'] as const) {
    if (inodeOf(PIPES[each]) === opened[each]) continue
    const why = `${label} closed its ${each}, by which its inputs and results go: it must leave the file descriptors 0 and 1 alone\n`
    try {
      writeSync(2, why)
    } finally {
      process.exit(1)
    }
  }
}

function inodeOf(descriptor: number): number | undefined {
  try {
    return fstatSync(descriptor).ino
  } catch {
    return undefined
  }
}

async function load(): Promise<Handler | undefined> {
  try {
    const module = await import('./module.mjs' as string)
    if (typeof module[name] === 'function') return module[name]
    const functions = Object.keys(module).filter((each) => typeof module[each] === 'function')
    const has = functions.length > 0 ? `its functions are ${functions.join(', ')}` : 'it has none'
    const is = name in module ? `is of type ${typeof module[name]}` : 'is not there'
    throw new TypeError(`the export ${JSON.stringify(name)} of ${label} ${is}: ${has}`)
  } catch (error) {
    say({ k: 'broken', error: described(error) })
    return undefined
  }
}

interface Input {
  readonly id: string
  readonly json: string | null
  readonly file?: string
  readonly attempt: number
}

async function run(handler: Handler, { id, json, file, attempt }: Input): Promise<void> {
  const abort = new AbortController()
  const call: Call = { id, abort, open: { stdout: '', stderr: '' } }
  calls.set(id, call)
  try {
    const text = file === undefined ? json : readFileSync(file, 'utf8')
    if (file !== undefined) unlinkSync(file)
    const input = text === null ? undefined : JSON.parse(text)
    const tell = (news: unknown) => say({ k: 'told', id, news })
    const context = { signal: abort.signal, attempt, tell }
    const value = await current.run(call, async () => await handler(input, context))
    const answer: string | undefined = plainJson(value, `what ${label} returned`)
    flush(call)
    answered(id, answer)
  } catch (error) {
    flush(call)
    say({ k: 'threw', id, error: described(error) })
  } finally {
    calls.delete(id)
    checkPipes()
  }
}

function answered(id: string, answer: string | undefined): void {
  if (answer === undefined || Buffer.byteLength(answer) <= Number(inline)) {
    say({ k: 'value', id, json: answer ?? null })
  } else {
    const file = `${directory}/out-${id}`
    writeFileSync(file, answer)
    say({ k: 'value', id, json: null, file })
  }
}

function described(error: unknown): object {
  if (!(error instanceof Error)) {
    const text = typeof error === 'string' ? error : inspect(error, { depth: 2 })
    return { name: 'Error', message: text.slice(0, 4_096) }
  }
  const name = String(error.name).slice(0, 200)
  const message = String(error.message).slice(0, 4_096)
  return { name, message, stack: ownFrames(String(error.stack)).slice(0, 16_384) }
}

/** Down to the call by this file. */
function ownFrames(stack: string): string {
  const lines = stack.split('\n')
  const end = lines.findIndex((line) => /^\s+at /.test(line) && line.includes(`${directory}/main`))
  return (end < 0 ? lines : lines.slice(0, end)).join('\n')
}

// What it printed last says why it ended.
process.on('exit', () => {
  for (const call of calls.values()) flush(call)
})

/** What came before the module was loaded. */
const early: string[] = []
let take = (line: string): void => void early.push(line)

/** Until the secret has come. */
function readRequests(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  let rest = ''
  requests.setEncoding('utf8')
  requests.on('data', (text) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      if (secret !== undefined) take(line)
      else {
        secret = String(JSON.parse(line).secret)
        resolve()
      }
    }
  })
  requests.on('end', () => process.exit(0))
  return promise
}

await readRequests()
const handler = await load()
if (handler) {
  checkPipes()
  setInterval(checkPipes, PIPE_CHECK_MS).unref()
  take = (line) => {
    const request = JSON.parse(line)
    if (request.k === 'run') void run(handler, request)
    else calls.get(request.id)?.abort.abort(new Error('nobody waits for this input any more'))
  }
  early.splice(0).forEach(take)
  say({ k: 'ready' })
} else requests.destroy()
