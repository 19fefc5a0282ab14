import {
  type BuildStep,
  completeResources,
  type ImageSource,
  imageSource,
  LIMITS,
  type NetworkPolicy,
} from '@sandlot/protocol'
import { sourceInvalid } from './image-error.ts'
import { imageLimits } from './limits.ts'
import { formatReference, parseReference } from './reference.ts'

export type SourceOf<K extends ImageSource['kind']> = Extract<ImageSource, { kind: K }>

/** Steps of a build reach the package mirrors unless they say otherwise. */
const DEFAULT_NETWORK: NetworkPolicy = 'packages'

/**
 * Checks a source and brings it into its one form: defaults written out, steps over steps in one list. Fails with
 * `image_source_invalid`.
 */
export function normalizedSource(input: ImageSource): ImageSource {
  checkDepth(input)
  const parsed = imageSource.safeParse(input)
  if (!parsed.success) {
    const problem = parsed.error.issues[0]
    throw sourceInvalid(
      `This is not an image source: ${problem?.path.join('.') ?? ''} ${problem?.message ?? ''}.`,
      'Use debian with a suite and package names; directory, tar or oci with the digest of a blob; registry with a reference; id; or built with a base and steps.',
    )
  }
  return normalized(parsed.data)
}

function normalized(source: ImageSource): ImageSource {
  switch (source.kind) {
    case 'debian':
      return checkedDebian(source)
    case 'directory':
    case 'tar':
    case 'oci':
      checkBlob(source.blob)
      return source
    case 'registry':
      return { kind: 'registry', reference: formatReference(parseReference(source.reference)) }
    case 'id':
      return source
    case 'built':
      return flattened(source)
  }
}

/** How deep sources lie in one another, without recursion: it is not checked by anything before. */
function checkDepth(input: unknown): void {
  const left: { readonly value: unknown; readonly depth: number }[] = [{ value: input, depth: 1 }]
  for (let next = left.pop(); next; next = left.pop()) {
    const { value, depth } = next
    if (typeof value !== 'object' || value === null) continue
    if (depth > LIMITS.sourceDepth) {
      throw sourceInvalid(
        `Sources lie more than ${LIMITS.sourceDepth} deep in one another.`,
        'Build an inner one first, and use its id.',
      )
    }
    const { base, steps } = value as { base?: unknown; steps?: unknown }
    left.push({ value: base, depth: depth + 1 })
    for (const step of Array.isArray(steps) ? steps : []) {
      left.push({ value: (step as { source?: unknown } | null)?.source, depth: depth + 1 })
    }
  }
}

/** Without a network of its own: each step that runs something has it. */
function flattened(source: SourceOf<'built'>): ImageSource {
  const network = source.network ?? DEFAULT_NETWORK
  const base = normalized(source.base)
  const steps = source.steps.map((step) => normalizedStep(step, network))
  if (base.kind === 'built') return { ...base, steps: [...base.steps, ...steps] }
  return steps.length === 0 ? base : { kind: 'built', base, steps }
}

function normalizedStep(step: BuildStep, network: NetworkPolicy): BuildStep {
  switch (step.kind) {
    case 'run':
      return { ...step, network: step.network ?? network }
    case 'function': {
      const resources = completeResources(step.resources)
      return { ...step, network: step.network ?? network, resources }
    }
    case 'copy':
      checkBlob(step.blob)
      if (step.content !== undefined) checkBlob(step.content)
      return step
    case 'copyFrom':
      return { ...step, source: normalized(step.source) }
    default:
      return step
  }
}

function checkedDebian(source: SourceOf<'debian'>): ImageSource {
  if (!/^[a-z][a-z0-9-]{0,30}$/.test(source.suite)) {
    throw sourceInvalid(
      `${JSON.stringify(source.suite)} is not the name of a Debian suite.`,
      'Give a code name such as bookworm or trixie.',
    )
  }
  for (const name of source.packages) {
    if (!/^[a-z0-9][a-z0-9+.-]+$/.test(name) || name.length > imageLimits.packageNameLengthMax) {
      throw sourceInvalid(
        `${JSON.stringify(name)} is not the name of a Debian package.`,
        'Package names have lower-case letters, digits, +, . and - only.',
      )
    }
  }
  return { kind: 'debian', suite: source.suite, packages: [...new Set(source.packages)].sort() }
}

function checkBlob(blob: string): void {
  if (/^sha256:[0-9a-f]{64}$/.test(blob)) return
  throw sourceInvalid(
    `${JSON.stringify(blob)} is not the digest of a blob.`,
    'A digest is sha256: and 64 hexadecimal digits in lower case.',
  )
}
