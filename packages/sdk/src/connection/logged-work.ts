import { errorEnvelope, type FunctionLine, type RouteName, SandlotError } from '@sandlot/protocol'
import type { ClientContext, Waiting } from './context.ts'
import { isOutage } from './failure.ts'
import { FunctionCalls, type RunFunction } from './function-calls.ts'
import { joinSignals } from './signals.ts'

export interface LogOptions extends Waiting {
  /** Gets each line of the log as it comes. */
  readonly onLog?: (line: string) => void
  /** Gets what the programs of the work print besides, line by line. */
  readonly onDetail?: (line: string) => void
}

/** One line of the answer: of the log, or the last one. */
export type WorkNews<T> =
  | { readonly kind: 'log'; readonly line: string }
  | { readonly kind: 'detail'; readonly line: string }
  | FunctionLine
  | { readonly kind: 'done'; readonly value: T }
  | { readonly kind: 'error'; readonly error?: unknown }

/**
 * Asks for work that takes long and answers in lines. The daemon knows such work by its content: what an outage cut off is asked for
 * again, and what was done already is found.
 */
export async function loggedWork<T>(
  context: ClientContext,
  route: RouteName,
  json: unknown,
  options: LogOptions & { readonly onFunction?: RunFunction },
  parse: (line: unknown) => WorkNews<T>,
): Promise<T> {
  const { signal, onLog, onDetail, onFunction = noFunctions } = options
  const functions = new FunctionCalls(context, onFunction)
  const outage = context.connection.outage()
  for (;;) {
    try {
      using joined = joinSignals(signal, functions.broken)
      const answer = context.http.bytes(route, { json, signal: joined.signal })
      for await (const line of linesOf(answer)) {
        outage.over()
        const news = parse(JSON.parse(line))
        if (news.kind === 'log') onLog?.(news.line)
        else if (news.kind === 'detail') onDetail?.(news.line)
        else if (news.kind === 'function') functions.begin(news)
        else if (news.kind === 'done') return news.value
        else {
          const { error } = errorEnvelope.parse({ error: news.error })
          throw functions.failure?.error ?? SandlotError.fromEnvelope({ error })
        }
      }
      throw new SandlotError('connection_lost', 'the connection broke before the work was done')
    } catch (error) {
      if (!isOutage(error)) throw error
      await functions.settled(signal)
      await outage.wait(error, signal)
    }
  }
}

async function noFunctions({ key }: FunctionLine): Promise<never> {
  throw new SandlotError('unsupported', `nothing here knows the function ${key}`)
}

async function* linesOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const part of bytes) {
    const lines = (rest + decoder.decode(part, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line !== '') yield line
  }
  if (rest !== '') yield rest
}
