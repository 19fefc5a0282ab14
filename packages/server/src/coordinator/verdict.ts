/** What a command that has ended says as its verdict. Nothing here is ever a 0 by itself: what can't be read is no verdict. */
import type { RewardSource } from '@sandlot/protocol'
import { endedHow } from '../node/ended-how.ts'
import type { NodeExecEnd } from '../node/port.ts'

export type Verdict = Given | { readonly kind: 'none'; readonly cause: string }

export interface Given {
  readonly kind: 'given'
  readonly reward?: number
  readonly rewards?: Readonly<Record<string, number>>
}

export const BY_EXIT: RewardSource = { from: 'exit' }

/** `read` gives a file as the command left it; undefined where there is none. `who`: how it is spoken of. */
export async function readVerdict(
  source: RewardSource,
  end: NodeExecEnd,
  { who, read }: { who: string; read(path: string): Promise<Uint8Array | undefined> },
): Promise<Verdict> {
  if (!hasRun(end)) return none(`${who} ${endedHow(end)}`)
  switch (source.from) {
    case 'exit':
      return { kind: 'given', reward: end.exitCode === 0 ? 1 : 0 }
    case 'stdout':
      return verdictOfOutput(end, who)
    case 'file': {
      for (const path of source.paths) {
        const bytes = await read(path)
        if (bytes !== undefined) return verdictOfFile(path, Buffer.from(bytes).toString().trim())
      }
      return none(`${who} left no ${source.paths.join(' nor ')}, and ${endedHow(end)}`)
    }
  }
}

/** The shell's codes for "not executable" and "not found", and a signal, say nothing of what was to be done. */
export function hasRun({ exitCode }: Pick<NodeExecEnd, 'exitCode'>): boolean {
  return exitCode !== null && exitCode !== 126 && exitCode !== 127
}

function verdictOfOutput(end: NodeExecEnd, who: string): Verdict {
  if (end.stdoutDroppedBytes > 0) {
    return none(
      `${who} printed ${end.stdoutTotalBytes} bytes, more than are read: print less, or write the verdict to a file`,
    )
  }
  const text = Buffer.from(end.stdout).toString().trim()
  const whole = parseJson(text)
  if (whole !== undefined) return verdictOf(whole, `what ${who} printed`)
  const lines = text.split('\n').map(parseJson).filter(isVerdictLine)
  if (lines.length === 1) return verdictOf(lines[0], `what ${who} printed`)
  const what = lines.length === 0 ? 'no verdict as JSON' : `${lines.length} verdicts`
  return none(`${who} printed ${what}, and ${endedHow(end)}`)
}

function verdictOfFile(path: string, text: string): Verdict {
  if (text === '') return none(`${path} is empty`)
  const value = parseJson(text) ?? numberOf(text)
  return value === undefined
    ? none(`${path} holds neither JSON nor a number: ${shown(text)}`)
    : verdictOf(value, path)
}

function verdictOf(value: unknown, where: string): Verdict {
  if (typeof value === 'number') {
    return Number.isFinite(value)
      ? { kind: 'given', reward: value }
      : none(`${where} is ${value}: a reward is a finite number`)
  }
  if (!isObject(value)) {
    return none(`${where} is ${shown(JSON.stringify(value))}: neither a number nor an object`)
  }
  const { reward, rewards } = value
  const isVerdict = Object.keys(value).every((name) => name === 'reward' || name === 'rewards')
  if (isVerdict && isObject(rewards)) {
    return named(rewards, where, reward === undefined ? {} : { reward })
  }
  return named(value, where, reward === undefined ? {} : { reward })
}

/** All of an object are numbers, or it is no verdict. */
function named(
  rewards: Readonly<Record<string, unknown>>,
  where: string,
  given: { readonly reward?: unknown },
): Verdict {
  const entries = Object.entries({ ...rewards, ...given })
  if (entries.length === 0) return none(`${where} names no reward`)
  for (const [name, value] of entries) {
    if (typeof value === 'number' && Number.isFinite(value)) continue
    return none(`${where}: ${shown(name)} is ${shown(JSON.stringify(value))}, not a finite number`)
  }
  const { reward } = given as { readonly reward?: number }
  const others = Object.keys(rewards).some((name) => name !== 'reward')
  return {
    kind: 'given',
    ...(reward === undefined ? {} : { reward }),
    ...(others || reward === undefined
      ? { rewards: rewards as Readonly<Record<string, number>> }
      : {}),
  }
}

function isVerdictLine(value: unknown): boolean {
  return isObject(value) && ('reward' in value || 'rewards' in value)
}

/** What graders write that is no JSON: `.5`, `1.`, `+1`, `nan`. */
function numberOf(text: string): number | undefined {
  if (/^[+-]?(?:nan|inf(?:inity)?)$/i.test(text)) return Number.NaN
  return /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(text) ? Number(text) : undefined
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function none(cause: string): Verdict {
  return { kind: 'none', cause }
}

function shown(text = 'undefined'): string {
  return text.length > 80 ? `${text.slice(0, 80)}…` : text
}
