import { destination, type Logger, pino } from 'pino'
import { build as pretty } from 'pino-pretty'
import type { DaemonOptions } from './config.ts'

/** What no line may show, wherever it stands. */
const SECRETS = [
  'authorization',
  'apiKey',
  'key',
  'token',
  'env',
  'headers.authorization',
  '*.authorization',
  '*.apiKey',
  '*.token',
  '*.env',
]

/** The daemon's log, on standard error: lines for a person, or JSON for a machine. */
export function openLog({
  logLevel,
  logFormat,
}: Pick<DaemonOptions, 'logLevel' | 'logFormat'>): Logger {
  const options = {
    level: logLevel,
    base: null,
    redact: { paths: SECRETS, censor: '(secret)' },
  }
  if (logFormat === 'json') return pino(options, destination({ dest: 2, sync: false }))
  return pino(
    options,
    pretty({ destination: 2, sync: true, ignore: 'pid,hostname', singleLine: true }),
  )
}
