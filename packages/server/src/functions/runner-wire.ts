/**
 * What daemon and runner say to one another: one JSON value a line, on the runner's stdin and stdout. What the function or a program that
 * it starts prints to the same stdout is told apart by a secret before each frame, which the daemon says first.
 */
import { z } from 'zod'
import { FUNCTION_LIMITS } from './limits.ts'

const thrown = z.object({
  name: z.string(),
  message: z.string(),
  stack: z.string().optional(),
})

export const runnerFrame = z.discriminatedUnion('k', [
  z.object({ k: z.literal('ready') }),
  /** The module can't be loaded, or has no such function. */
  z.object({ k: z.literal('broken'), error: thrown }),
  z.object({
    k: z.literal('value'),
    id: z.string(),
    json: z.string().nullable(),
    file: z.string().optional(),
  }),
  z.object({ k: z.literal('threw'), id: z.string(), error: thrown }),
  /** For whoever gave the input: what it means is between the two. */
  z.object({ k: z.literal('told'), id: z.string(), news: z.unknown() }),
  z.object({
    k: z.literal('log'),
    id: z.string().nullable(),
    channel: z.enum(['stdout', 'stderr']),
    text: z.string(),
  }),
])
export type RunnerFrame = z.infer<typeof runnerFrame>

export type RunnerRequest =
  | { readonly k: 'begin'; readonly secret: string }
  | {
      readonly k: 'run'
      readonly id: string
      readonly json: string | null
      readonly file?: string
      readonly attempt: number
    }
  | { readonly k: 'cancel'; readonly id: string }

export interface LineReader {
  push(bytes: Uint8Array): void
}

/** Tells frames from text. What is no frame though it begins as one breaks the protocol, and `onFrame` gets undefined. */
export function readLines(
  secret: string,
  on: {
    readonly frame: (frame: RunnerFrame | undefined) => void
    readonly text: (text: string) => void
  },
): LineReader {
  const decoder = new TextDecoder()
  let rest = ''
  function take(line: string): void {
    const at = line.indexOf(secret)
    if (at !== 0) on.text(at < 0 ? line : line.slice(0, at))
    if (at >= 0) on.frame(parse(line.slice(at + secret.length)))
  }
  return {
    push(bytes) {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) take(line)
      if (rest.length <= FUNCTION_LIMITS.frameChars) return
      // A frame may follow what has no end, and a piece of it may be there already.
      const at = rest.indexOf(secret)
      const until = at < 0 ? rest.length - secret.length : at
      if (until > 0) on.text(rest.slice(0, until))
      rest = rest.slice(until)
      if (rest.length <= FUNCTION_LIMITS.frameChars) return
      take(rest)
      rest = ''
    },
  }
}

function parse(text: string): RunnerFrame | undefined {
  try {
    return runnerFrame.parse(JSON.parse(text))
  } catch {
    return undefined
  }
}
