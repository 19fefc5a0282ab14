/** Keys of sources: the same key is the same image. */
import { createHash } from 'node:crypto'
import type { BuildStep, ImageSource } from '@sandlot/protocol'
import { parseReference } from './reference.ts'
import type { SourceOf } from './source.ts'

/** Each grows when the same source would give another image than before: of bases of a kind, and of steps over them. */
const BASE_FORMATS = { debian: 2, directory: 1, tar: 1, oci: 1, registry: 1, id: 1 } as const
const STEP_FORMAT = 2

/** Of a source that is normalised and resolved. 64 hexadecimal digits. */
export function sourceKey(source: ImageSource): string {
  if (source.kind !== 'built') {
    return keyOf([BASE_FORMATS[source.kind], source.kind, ...fieldsOf(source)])
  }
  return stepKeys(source).at(-1) ?? sourceKey(source.base)
}

/** One key for each step: of all that lies before it, and the step. */
export function stepKeys(source: SourceOf<'built'>): string[] {
  let parent = sourceKey(source.base)
  return source.steps.map((step) => {
    parent = keyOf([STEP_FORMAT, 'step', parent, stepFields(step)])
    return parent
  })
}

function fieldsOf(source: Exclude<ImageSource, { kind: 'built' }>): readonly string[] {
  switch (source.kind) {
    case 'debian':
      return [source.suite, ...source.packages]
    case 'directory':
    case 'tar':
    case 'oci':
      return [source.blob]
    case 'registry':
      return registryFields(source.reference)
    case 'id':
      return [source.id]
  }
}

/** The tag that a digest was found by says nothing. */
function registryFields(text: string): string[] {
  const { registry, repository, digest } = parseReference(text)
  if (digest === undefined) throw new Error(`${text} was not resolved before its key was asked for`)
  return [registry, repository, digest]
}

function stepFields(step: BuildStep): unknown {
  switch (step.kind) {
    case 'copyFrom':
      return { ...step, source: sourceKey(step.source) }
    case 'copy':
      // The times of the files are in the tar, and in no content.
      return step.content === undefined ? step : { ...step, blob: undefined }
    case 'function':
      return { ...step, call: undefined }
    case 'run':
      // How long it may take changes nothing of what it makes.
      return { ...step, timeout: undefined }
    default:
      return step
  }
}

function keyOf(value: unknown): string {
  return createHash('sha256')
    .update(JSON.stringify(sorted(value)))
    .digest('hex')
}

/** Fields in one order, whatever order they came in. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).filter(([, field]) => field !== undefined)
  entries.sort(([a], [b]) => (a < b ? -1 : 1))
  return entries.map(([name, field]) => [name, sorted(field)])
}
