/** In what two runs of one name differ, by the options of the SDK that a user wrote. */
import { diskDefault, formatDuration, formatSize, type Resources } from '@sandlot/protocol'
import { canonical, identityOf, type Specification } from './specification.ts'

export interface Difference {
  /** As it is written: `timeout.agent`, `grade.files./tests/check.py`. */
  readonly option: string
  /** In a few words each. Undefined: it is not set. */
  readonly existing: string | undefined
  readonly requested: string | undefined
}

/** Differences that a message tells one by one. */
const TOLD_MAX = 6
const SHOWN_CHARS = 60
/** Of a digest, behind `sha256:`. */
const DIGEST_CHARS = 19

/** The options that are part of what a run is, and that are not the same in both. */
export function differencesOf(existing: Specification, requested: Specification): Difference[] {
  const before = optionsOf(existing)
  const after = optionsOf(requested)
  const names = new Set([...before.keys(), ...after.keys()])
  return [...names].flatMap((option) => {
    const [was, is] = [before.get(option), after.get(option)]
    if (canonical(was) === canonical(is)) return []
    return { option, existing: shown(option, was), requested: shown(option, is) }
  })
}

/** As one sentence; each begins with its option and a colon, so that a command line can put its own in its place. */
export function sayDifferences(differences: readonly Difference[]): string {
  const told = differences
    .slice(0, TOLD_MAX)
    .map(({ option, existing, requested }) =>
      existing === requested
        ? `${option}: another value`
        : `${option}: ${existing ?? 'not set'} there, ${requested ?? 'not set'} here`,
    )
  const more = differences.length - told.length
  return [...told, ...(more > 0 ? [`and ${more} more`] : [])].join('; ')
}

/** For a program: each option with both. */
export function fieldsOf(differences: readonly Difference[]) {
  return Object.fromEntries(
    differences.map(({ option, existing = null, requested = null }) => [
      option,
      { existing, requested },
    ]),
  )
}

type Options = Map<string, unknown>
type Fields = Readonly<Record<string, unknown>>

function optionsOf(specification: Specification): Options {
  const options: Options = new Map()
  for (const [field, value] of Object.entries(identityOf(specification))) {
    if (value === undefined || value === null || value === '') continue
    if (field === 'imageDigest') options.set('from', value)
    else if (field === 'memory') options.set('from (its saved memory)', value)
    else if (field === 'timeoutMs') below(options, 'timeout', value as Fields)
    else if (field === 'resources') below(options, field, given(value as Resources))
    else if (field === 'grade') below(options, field, graderOf(value as Fields))
    else if (field === 'program') below(options, '', value as Fields)
    else if (field === 'function') below(options, 'fn', functionOf(value as Fields))
    else if (BY_MEMBER.has(field)) below(options, field, value as Fields)
    else options.set(field, value)
  }
  return options
}

/** Options of which each member is one by itself. */
const BY_MEMBER: ReadonlySet<string> = new Set([
  ...['retry', 'network', 'secrets', 'env', 'group', 'hedge', 'policy', 'model', 'resources'],
])

function below(options: Options, path: string, fields: Fields): void {
  const prefix = path === '' ? '' : `${path}.`
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined || value === null) continue
    const option = `${prefix}${name}`
    if (name === 'files') {
      below(options, option, contentsOf(value as readonly File[]))
    } else if (BY_MEMBER.has(name) && typeof value === 'object') {
      below(options, option, value as Fields)
    } else options.set(option, value)
  }
}

interface File {
  readonly path: string
  readonly blob: string
  readonly mode: number
}

function contentsOf(files: readonly File[]): Fields {
  return Object.fromEntries(files.map(({ path, blob, mode }) => [path, { blob, mode }]))
}

/** Without a disk that follows from the memory. */
function given({ disk, ...resources }: Resources): Fields {
  return disk === diskDefault(resources.memory) ? resources : { ...resources, disk }
}

function graderOf({ kind, command, ...grade }: Fields): Fields {
  return { run: kind === 'worker' ? A_FUNCTION : command, ...grade }
}

function functionOf({ bundle, timeoutMs, image, ...fn }: Fields): Fields {
  return { code: bundle, ...fn, from: image, timeout: timeoutMs }
}

const A_FUNCTION = { kind: 'worker' } as const

function shown(option: string, value: unknown): string | undefined {
  if (value === undefined) return undefined
  if (value === A_FUNCTION) return 'a function'
  // A variable may hold what nobody else is to read.
  if (/(^|\.)env\./.test(option)) return 'a value'
  if (/^(fn\.)?timeout(\.|$)/.test(option) && typeof value === 'number')
    return formatDuration(value)
  if (/(^|\.)resources\.(memory|disk|fileSize)$/.test(option)) return sizes(value)
  if (isContent(value)) return short(value.blob)
  if (typeof value === 'string' && value.startsWith('sha256:')) return short(value)
  const text = JSON.stringify(value)
  return text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}…` : text
}

function sizes(value: unknown): string {
  if (typeof value === 'number') return formatSize(value)
  const { request, limit } = value as { readonly request: number; readonly limit: number }
  return request === limit ? formatSize(limit) : `${formatSize(request)} to ${formatSize(limit)}`
}

function short(digest: string): string {
  return digest.slice(0, DIGEST_CHARS)
}

function isContent(value: unknown): value is Pick<File, 'blob'> {
  return typeof value === 'object' && value !== null && 'blob' in value
}
