/** Names become contents: tags their digests, ids and names of snapshots and templates the images that they start from. */
import type { BuildStep, ImageSource } from '@sandlot/protocol'
import { pinnedReference, type RegistryOptions } from './registry.ts'

/** The image that a start from an id or a name uses. Fails with an error of its own where there is none. */
export type ResolveId = (id: string, wait: { readonly signal: AbortSignal }) => Promise<string>

export interface Resolving {
  readonly registry: RegistryOptions
  readonly resolveId: ResolveId
  readonly signal: AbortSignal
}

/** Of a normalised source. Each name is asked for once, however often it occurs. */
export async function resolvedSource(
  source: ImageSource,
  options: Resolving,
): Promise<ImageSource> {
  return await resolved(source, options, new Map())
}

async function resolved(
  source: ImageSource,
  options: Resolving,
  known: Map<string, string>,
): Promise<ImageSource> {
  const { registry, resolveId, signal } = options
  if (source.kind === 'registry') {
    const { reference: name } = source
    const reference = known.get(name) ?? (await pinnedReference(name, registry, { signal }))
    known.set(name, reference)
    return { kind: 'registry', reference }
  }
  if (source.kind === 'id') {
    const key = `id ${source.id}`
    const id = known.get(key) ?? (await resolveId(source.id, { signal }))
    known.set(key, id)
    return { kind: 'id', id }
  }
  if (source.kind !== 'built') return source
  const steps: BuildStep[] = []
  for (const step of source.steps) {
    const isCopy = step.kind === 'copyFrom'
    steps.push(isCopy ? { ...step, source: await resolved(step.source, options, known) } : step)
  }
  return { ...source, base: await resolved(source.base, options, known), steps }
}
