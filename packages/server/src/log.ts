import { destination, type LogFn, type Logger, pino } from 'pino'
import { build as pretty } from 'pino-pretty'
import type { DaemonOptions } from './config.ts'
import { redacted, SECRET_FIELDS } from './redact.ts'

/** The daemon's log, on standard error: lines for a person, or JSON for a machine. */
export function openLog({
  logLevel,
  logFormat,
}: Pick<DaemonOptions, 'logLevel' | 'logFormat'>): Logger {
  const options = {
    level: logLevel,
    base: null,
    redact: { paths: SECRET_FIELDS, censor: '(secret)' },
    serializers: { err: errorWithoutSecrets },
    hooks: { logMethod: withoutSecrets },
  }
  if (logFormat === 'json') return pino(options, destination({ dest: 2, sync: false }))
  return pino(
    options,
    pretty({ destination: 2, sync: true, ignore: 'pid,hostname', singleLine: true }),
  )
}

function withoutSecrets(this: Logger, given: Parameters<LogFn>, method: LogFn): void {
  const safe = given.map((part: unknown) => (typeof part === 'string' ? redacted(part) : part))
  method.apply(this, safe as Parameters<LogFn>)
}

/** With its causes: a message may quote what it was given. */
function errorWithoutSecrets(error: Error): unknown {
  const { message, stack, ...rest } = pino.stdSerializers.err(error)
  return { ...rest, message: redacted(message), stack: redacted(stack) }
}
