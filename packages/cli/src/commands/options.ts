/** From what Commander gives to what the SDK takes. */
import {
  completeResources,
  parseDurationMs,
  parseSizeBytes,
  resources,
  SandlotError,
} from '@sandlot/protocol'
import { Failure } from '../failure.ts'

/** `NAME=VALUE` each, as one object. */
export function pairs(texts: readonly string[], option: string): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const position = text.indexOf('=')
      if (position <= 0)
        throw new Failure(`${option} ${text} is not NAME=VALUE`, `write it as ${option} NAME=VALUE`)
      return [text.slice(0, position), text.slice(position + 1)]
    }),
  )
}

/** Only what was given: an absent option is not the same as one that is undefined. */
export function given<T extends object>(options: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined),
  ) as never
}

/** Before anything begins. @throws SandlotError `invalid_request` for what is no duration */
export function checkDuration(text: string | undefined, option: string): void {
  const hint = `Write it as ${option} 30s.`
  refuse(() => text !== undefined && parseDurationMs(text), { prefix: `${option}: `, hint })
}

export interface ResourceOptions {
  readonly memory?: string
  readonly disk?: string
  readonly cpu?: number
  readonly pids?: number
}

/** Before an image is built for nothing. @throws SandlotError `invalid_request` for what no sandbox can have */
export function checkResources(options: ResourceOptions): void {
  for (const name of ['memory', 'disk'] as const) {
    const text = options[name]
    const hint = `Write it as --${name} 512MiB.`
    refuse(() => text !== undefined && parseSizeBytes(text), { prefix: `--${name}: `, hint })
  }
  const parsed = resources.safeParse(options)
  const [issue] = parsed.error?.issues ?? []
  if (issue) {
    const message = `--${issue.path.join('.')}: ${issue.message}`
    throw new SandlotError('invalid_request', message, { hint: 'Correct the option.' })
  }
  refuse(() => completeResources(parsed.data))
}

interface Refusal {
  readonly prefix?: string
  readonly hint?: string
}

/** What the parsers of quantities throw is a mistake in the command. */
function refuse(parse: () => unknown, { prefix = '', hint }: Refusal = {}): void {
  try {
    parse()
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new SandlotError('invalid_request', prefix + error.message, hint ? { hint } : {})
  }
}
