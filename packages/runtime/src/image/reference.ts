/** Names of images in registries, as `docker pull` takes them, in their one full form. */
import { sourceInvalid } from './image-error.ts'

export interface RegistryReference {
  /** Host, and port where it has one. */
  readonly registry: string
  readonly repository: string
  readonly tag?: string
  /** `sha256:…` */
  readonly digest?: string
}

const DEFAULT_REGISTRY = 'docker.io'
const NAME_CHARACTERS_MAX = 255

const HOST =
  /^(localhost|\[[0-9a-fA-F:]+\]|[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)*)(:[0-9]{1,5})?$/
const PART = /^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*$/
const TAG = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/
const DIGEST = /^sha256:[0-9a-f]{64}$/

/** `python` is `docker.io/library/python:latest`. Fails with `image_source_invalid`. */
export function parseReference(text: string): RegistryReference {
  const [named = '', digest, ...more] = text.replace(/^docker:\/\//, '').split('@')
  const colon = named.lastIndexOf(':')
  const hasTag = colon > named.lastIndexOf('/')
  const tag = hasTag ? named.slice(colon + 1) : undefined
  const { registry, parts } = splitName(hasTag ? named.slice(0, colon) : named)
  const repository = parts.join('/')
  const isRight =
    more.length === 0 &&
    HOST.test(registry) &&
    parts.every((part) => PART.test(part)) &&
    registry.length + 1 + repository.length <= NAME_CHARACTERS_MAX &&
    (tag === undefined || TAG.test(tag)) &&
    (digest === undefined || DIGEST.test(digest))
  if (!isRight) {
    throw sourceInvalid(
      `${JSON.stringify(text.slice(0, 200))} is not the name of an image in a registry.`,
      'Write it as python:3.12-slim, ghcr.io/owner/name:tag or name@sha256:… with 64 hexadecimal digits; repositories have lower-case letters only.',
    )
  }
  if (digest === undefined) return { registry, repository, tag: tag ?? 'latest' }
  return { registry, repository, ...(tag === undefined ? {} : { tag }), digest }
}

export function formatReference({ registry, repository, tag, digest }: RegistryReference): string {
  const tagged = tag === undefined ? '' : `:${tag}`
  return `${registry}/${repository}${tagged}${digest === undefined ? '' : `@${digest}`}`
}

/** A registry on this very machine may speak plain HTTP. */
export function isLoopback({ registry }: RegistryReference): boolean {
  const host = registry.replace(/:[0-9]+$/, '')
  return host === 'localhost' || host === '[::1]' || /^127(\.[0-9]{1,3}){3}$/.test(host)
}

/** The first part is a host when it can't be a repository: it has a dot or a port, or is localhost. */
function splitName(name: string): { readonly registry: string; readonly parts: string[] } {
  const parts = name.split('/')
  const first = parts[0] ?? ''
  const isHost = parts.length > 1 && (/[.:]/.test(first) || first === 'localhost')
  const host = isHost ? first : DEFAULT_REGISTRY
  const registry = host === 'index.docker.io' ? DEFAULT_REGISTRY : host
  const rest = isHost ? parts.slice(1) : parts
  const isOfficial = registry === DEFAULT_REGISTRY && rest.length === 1
  return { registry, parts: isOfficial ? ['library', ...rest] : rest }
}
