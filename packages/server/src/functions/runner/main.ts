/**
 * Runs in the container, as the only process of its function: loads the module, then calls the handler for each input that comes by stdin.
 * It is copied there as it is, and imports what Node.js has, and what is copied beside it.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import process, { argv, stderr, stdin, stdout } from 'node:process'
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

const [, , secret = '', name = '', label = '', inline = '0', directory = ''] = argv
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

const handler = await load()
if (handler) {
  let rest = ''
  stdin.setEncoding('utf8')
  stdin.on('data', (text) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const request = JSON.parse(line)
      if (request.k === 'run') void run(handler, request)
      else calls.get(request.id)?.abort.abort(new Error('nobody waits for this input any more'))
    }
  })
  stdin.on('end', () => process.exit(0))
  say({ k: 'ready' })
}
