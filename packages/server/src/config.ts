/** How a daemon is set up. The only file of this package that reads the environment. */
import { isIP } from 'node:net'
import { availableParallelism, totalmem } from 'node:os'
import { resolve } from 'node:path'
import type { Engine } from '@sandlot/engine'
import { LIMITS, parseDurationMs, parseSizeBytes, SandlotError } from '@sandlot/protocol'
import type { GvisorOptions, RuntimeDriver } from '@sandlot/runtime'
import type { ContainerSource } from './functions/container.ts'
import type { TlsFiles } from './http/certificate.ts'
import { SERVER_LIMITS } from './limits.ts'
import { type PriceTable, parsePrices } from './usage/prices.ts'

/** Programs that the driver `gvisor` needs, as absolute paths. Default: the runtime's own (`SANDLOT_RUNSC`, …). */
export type GvisorPrograms = Partial<Pick<GvisorOptions, 'runsc' | 'helper' | 'agent'>>

/** Everything a daemon is told; past this nothing is optional. */
export interface DaemonOptions {
  /** Address to listen on. Default 127.0.0.1. `SANDLOT_HOST` */
  readonly host: string
  /** Default 8760; 0 takes any free one. `SANDLOT_PORT` */
  readonly port: number
  /** What must survive: journal, blobs, images, the local key. Default /var/lib/sandlot. `SANDLOT_DATA_DIRECTORY` */
  readonly dataDirectory: string
  /** What lives with the machine, and `daemon.json`, by which others find this daemon. Default /run/sandlot. `SANDLOT_RUN_DIRECTORY` */
  readonly runDirectory: string
  /** Default gvisor. `SANDLOT_DRIVER`. A driver that is given is not disposed of. */
  readonly driver: 'gvisor' | 'fake' | RuntimeDriver
  /** For the driver gvisor alone. */
  readonly gvisor: GvisorPrograms
  /** Where functions run. Default null: in sandboxes of the driver. */
  readonly containers: ((parts: Pick<Engine, 'blobs'>) => ContainerSource) | null
  /** Name of this node in records and rows. Default `local`. */
  readonly node: string
  /** Blanks kept ready as long as there is any demand. Default four a processor, at most 16. 0: nothing waits. `SANDLOT_POOL` */
  readonly poolTarget: number
  /** All that wait in the pool, as demand and a quarter of the memory allow. Default 1,024. `SANDLOT_POOL_MAX` */
  readonly poolMax: number
  /** Without any demand for so long nothing waits. Milliseconds; default ten minutes. `SANDLOT_POOL_IDLE` */
  readonly poolIdleMs: number
  /** Sandboxes being started at once. Default two a processor: a start also waits. `SANDLOT_CREATIONS` */
  readonly creationsMax: number
  /** Room for requests, not for limits. Default 16 times the processors. `SANDLOT_CPUS` */
  readonly cpus: number
  /** Default 80 % of the machine's memory. */
  readonly memoryBytes: number
  /** Default 4,096. `SANDLOT_SANDBOXES` */
  readonly sandboxesMax: number
  /** What all images may take; the longest unused go. Default 0: half of the disk that they lie on. `SANDLOT_IMAGE_BYTES` */
  readonly imageBytes: number
  /** What an hour of processor, memory and disk costs. Default: nothing has a price. `SANDLOT_PRICES`: JSON, or a file with it */
  readonly prices: PriceTable | null
  /** Below so much free space on the disk of the data directory nothing new is admitted. Default 0: 2 % of it, at most 1 GiB. `SANDLOT_DISK_FREE` */
  readonly diskFreeBytes: number
  /** Of the machine's memory, so much is kept free: what is below is promised to no sandbox. Default 0: 5 % of it, at most 1 GiB. `SANDLOT_MEMORY_FREE` */
  readonly memoryFreeBytes: number
  /**
   * So long after its end a run is deleted, and a result of a queue, where they say nothing themselves. Default 0: somebody deletes runs, and
   * results stay a week. `SANDLOT_RETAIN`
   */
  readonly retainMs: number
  /** How long it is told what sandboxes took and cost, whatever became of their runs. Default 400 days. `SANDLOT_RETAIN_USAGE` */
  readonly usageRetainMs: number
  /** Whether what was acknowledged also survives a loss of power. Default no (`process`). `SANDLOT_DURABILITY` */
  readonly durability: 'process' | 'power'
  /**
   * The URL below whose host each port of a sandbox has a name, such as `https://ports.example.org` with DNS and a certificate for
   * `*.ports.example.org`. Default: `localhost` where the daemon listens on the loopback, else none. `SANDLOT_PORTS_URL`
   */
  readonly portsUrl: string | null
  /** PEM files of a certificate and its key: the daemon speaks TLS alone then. Default none. `SANDLOT_TLS_CERT`, `SANDLOT_TLS_KEY` */
  readonly tls: TlsFiles | null
  /** Requests of one key in a second. Default 5,000; 0: no limit. `SANDLOT_REQUESTS_PER_SECOND` */
  readonly requestsPerSecond: number
  /** Pages that may call the API. Default none. */
  readonly allowedOrigins: readonly string[]
  /** Default info. `SANDLOT_LOG_LEVEL` */
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent'
  /** Readable lines, or JSON. Default: lines on a terminal. */
  readonly logFormat: 'lines' | 'json'
}

export type DaemonInput = { readonly [K in keyof DaemonOptions]?: DaemonOptions[K] | undefined }

export const DEFAULT_PORT = 8_760

/** What was given, then the environment, then the defaults; what is empty counts as not given. @throws SandlotError `invalid_request` naming the setting */
export function daemonOptions(
  input: DaemonInput = {},
  environment: Readonly<Record<string, string | undefined>> = process.env,
): DaemonOptions {
  const cores = availableParallelism()
  const number = (name: string, given: number | undefined, fallback: number, range: Range) =>
    inRange(name, given ?? numberOf(name, environment[name]) ?? fallback, range)
  const inWords = (name: string, parse: (text: string) => number, what: string) =>
    parsed(name, environment[name], parse, what)
  const directory = (given: string | undefined, name: string, fallback: string) =>
    resolve(given || environment[name] || fallback)
  return {
    // An empty address would be every one of the machine.
    host: input.host || environment.SANDLOT_HOST || '127.0.0.1',
    port: number('SANDLOT_PORT', input.port, DEFAULT_PORT, { min: 0, max: 65_535, whole: true }),
    dataDirectory: directory(input.dataDirectory, 'SANDLOT_DATA_DIRECTORY', '/var/lib/sandlot'),
    runDirectory: directory(input.runDirectory, 'SANDLOT_RUN_DIRECTORY', '/run/sandlot'),
    driver: input.driver ?? oneOf(environment, 'SANDLOT_DRIVER', DRIVERS, 'gvisor'),
    gvisor: input.gvisor ?? {},
    containers: input.containers ?? null,
    node: input.node ?? 'local',
    poolTarget: number('SANDLOT_POOL', input.poolTarget, Math.min(16, 4 * cores), UP_TO_4096),
    poolMax: number('SANDLOT_POOL_MAX', input.poolMax, POOL_MAX, UP_TO_4096),
    poolIdleMs:
      input.poolIdleMs ??
      inWords('SANDLOT_POOL_IDLE', parseDurationMs, 'a duration such as 10m') ??
      POOL_IDLE_MS,
    creationsMax: number('SANDLOT_CREATIONS', input.creationsMax, 2 * cores, {
      min: 1,
      max: 1_024,
      whole: true,
    }),
    cpus: number('SANDLOT_CPUS', input.cpus, 16 * cores, { min: 0.1, max: 1e6, whole: false }),
    memoryBytes: input.memoryBytes ?? Math.floor(machineMemoryBytes() * 0.8),
    sandboxesMax: number('SANDLOT_SANDBOXES', input.sandboxesMax, 4_096, {
      min: 1,
      max: 100_000,
      whole: true,
    }),
    imageBytes:
      input.imageBytes ??
      inWords('SANDLOT_IMAGE_BYTES', parseSomeBytes, 'a size above 0 such as 100GiB') ??
      0,
    diskFreeBytes:
      input.diskFreeBytes ??
      inWords('SANDLOT_DISK_FREE', parseSomeBytes, 'a size above 0 such as 5GiB') ??
      0,
    memoryFreeBytes:
      input.memoryFreeBytes ??
      inWords('SANDLOT_MEMORY_FREE', parseSomeBytes, 'a size above 0 such as 2GiB') ??
      0,
    retainMs:
      input.retainMs ??
      inWords('SANDLOT_RETAIN', parseRetainMs, 'a duration of at least a minute such as 30d') ??
      0,
    usageRetainMs:
      input.usageRetainMs ??
      inWords('SANDLOT_RETAIN_USAGE', parseUsageMs, 'a duration of at least a day such as 90d') ??
      SERVER_LIMITS.usageMs,
    prices: input.prices ?? pricesOf(environment.SANDLOT_PRICES),
    durability:
      input.durability ?? oneOf(environment, 'SANDLOT_DURABILITY', ['process', 'power'], 'process'),
    portsUrl: originOf('SANDLOT_PORTS_URL', input.portsUrl ?? environment.SANDLOT_PORTS_URL),
    tls: input.tls ?? tlsOf(environment),
    requestsPerSecond: number('SANDLOT_REQUESTS_PER_SECOND', input.requestsPerSecond, 5_000, {
      min: 0,
      max: 1e9,
      whole: false,
    }),
    allowedOrigins: input.allowedOrigins ?? [],
    logLevel: input.logLevel ?? oneOf(environment, 'SANDLOT_LOG_LEVEL', LOG_LEVELS, 'info'),
    logFormat: input.logFormat ?? (process.stderr.isTTY ? 'lines' : 'json'),
  }
}

function tlsOf(environment: Readonly<Record<string, string | undefined>>): TlsFiles | null {
  const { SANDLOT_TLS_CERT: cert, SANDLOT_TLS_KEY: key } = environment
  if (cert && key) return { cert, key }
  if (cert) throw refused('SANDLOT_TLS_CERT', cert, 'needs SANDLOT_TLS_KEY beside it')
  if (key) throw refused('SANDLOT_TLS_KEY', key, 'needs SANDLOT_TLS_CERT beside it')
  return null
}

function pricesOf(given: string | undefined): PriceTable | null {
  return given === undefined || given === '' ? null : parsePrices('SANDLOT_PRICES', given)
}

function parseRetainMs(text: string): number {
  const ms = parseDurationMs(text)
  if (ms < LIMITS.retainMsMin) throw new RangeError(`${text} is shorter than a minute`)
  return ms
}

/** It is kept and deleted by days. */
function parseUsageMs(text: string): number {
  const ms = parseDurationMs(text)
  if (ms < DAY_MS) throw new RangeError(`${text} is shorter than a day`)
  return ms
}

/** Where 0 would be taken for what is not given. */
function parseSomeBytes(text: string): number {
  const bytes = parseSizeBytes(text)
  if (bytes === 0) throw new RangeError(`${text} is nothing`)
  return bytes
}

/** An origin as it is configured. */
function originOf(name: string, text: string | null | undefined): string | null {
  if (text === undefined || text === null || text === '') return null
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol) || `${url.origin}/` !== url.href) {
    throw refused(name, text, 'is not an http or https URL of a host alone')
  }
  if (isIP(url.hostname.replace(/^\[|\]$/g, '')) !== 0) {
    throw refused(name, text, 'has an address, below which nothing has a name')
  }
  return url.origin
}

const DRIVERS = ['gvisor', 'fake'] as const
const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const

interface Range {
  readonly min: number
  readonly max: number
  readonly whole: boolean
}
const UP_TO_4096: Range = { min: 0, max: 4_096, whole: true }
const POOL_MAX = 1_024
const POOL_IDLE_MS = 10 * 60_000
const DAY_MS = 86_400_000

/** The smaller of what the machine has and what this process may have. */
function machineMemoryBytes(): number {
  const constrained = process.constrainedMemory()
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem()
}

function numberOf(name: string, text: string | undefined): number | undefined {
  if (text === undefined || text === '') return undefined
  // `Number` takes blanks for 0, which is no limit or no pool where somebody meant to say more.
  if (!/^-?\d+(\.\d+)?$/.test(text)) throw refused(name, text, 'is not a number')
  return Number(text)
}

function parsed(
  name: string,
  text: string | undefined,
  parse: (text: string) => number,
  what: string,
): number | undefined {
  if (text === undefined || text === '') return undefined
  try {
    return parse(text)
  } catch {
    throw refused(name, text, `is not ${what}`)
  }
}

function inRange(name: string, value: number, { min, max, whole }: Range): number {
  if (value < min || value > max || (whole && !Number.isInteger(value))) {
    throw refused(
      name,
      String(value),
      `is not ${whole ? 'a whole number' : 'a number'} from ${min} to ${max}`,
    )
  }
  return value
}

function oneOf<T extends string>(
  environment: Readonly<Record<string, string | undefined>>,
  name: string,
  words: readonly T[],
  fallback: T,
): T {
  const text = environment[name]
  if (text === undefined || text === '') return fallback
  const word = words.find((each) => each === text)
  if (word === undefined) throw refused(name, text, `is none of ${words.join(', ')}`)
  return word
}

function refused(name: string, value: string, why: string): SandlotError {
  return new SandlotError('invalid_request', `${name}: ${JSON.stringify(value)} ${why}`, {
    hint: `Correct ${name}, or the option of \`sandlot serve\` in its place.`,
  })
}
