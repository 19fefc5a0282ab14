/** Names become contents: tags their digests, ids and names of snapshots and templates the images that they start from. */
import type { BuildStep, ImageSource } from '@sandlot/protocol'
import { pinnedReference, type RegistryOptions } from './registry.ts'

/** The image that a start from an id or a name uses. Fails with an error of its own where there is none. */
export type ResolveId = (id: string, wait: { readonly signal: AbortSignal }) => Promise<string>

export interface Resolving {
  readonly registry: RegistryOptions
  readonly resolveId: ResolveId
  /** Who asks: a function is that of its project. */
  readonly project: string
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
    if (step.kind === 'copyFrom') {
      steps.push({ ...step, source: await resolved(step.source, options, known) })
    } else if (step.kind === 'function') steps.push({ ...step, project: options.project })
    else steps.push(step)
  }
  return { ...source, base: await resolved(source.base, options, known), steps }
}
