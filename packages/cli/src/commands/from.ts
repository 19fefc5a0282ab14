/** What `--from` may say. */
import { isAbsolute, join } from 'node:path'
import { idKind, isStartId, parseStartName, SandlotError } from '@sandlot/protocol'
import { Image, type ImageDescription, type ImageLike } from 'sandlot'

/** What is described by its kind and one name or path. */
export const SOURCE_KINDS = ['registry', 'dockerfile', 'directory', 'tar', 'oci'] as const
export type SourceKind = (typeof SOURCE_KINDS)[number]

const SUITE = /^[a-z][a-z-]*$/
const PACKAGE = /^[a-z0-9][a-z0-9.+-]+$/
/** Names that people know without thinking of where they come from. */
const KNOWN_SUITES = ['bullseye', 'bookworm', 'trixie', 'forky', 'sid', 'stable', 'testing']

const FORMS =
  'an id, the name of a snapshot or a template, snapshot:NAME, template:NAME, debian:SUITE[,PACKAGE…], registry:NAME, dockerfile:PATH, directory:PATH, tar:PATH or oci:PATH'

/**
 * An id or a name, which the daemon looks up, or a description in short, whose path is looked for in `folder`.
 * @throws SandlotError `invalid_request` with what was meant, as far as that can be told
 */
export function parseFrom(text: string, folder?: string): ImageLike {
  if (isStartId(text) || parseStartName(text)) return text
  const { kind, rest } = parts(text)
  const described = kind === 'debian' ? debian(rest) : undefined
  if (described) return described
  if (isSourceKind(kind) && rest !== '') {
    const isWhole = folder === undefined || kind === 'registry' || isAbsolute(rest)
    return descriptionOf(kind, isWhole ? rest : join(folder, rest))
  }
  if (mayBeName(text)) return text
  throw nothingToStartFrom(text)
}

/** Of what is no description, and no name that the daemon knows. */
export function nothingToStartFrom(text: string): SandlotError {
  return new SandlotError('invalid_request', `--from ${text} is nothing to start from`, {
    hint: `${guess(text)}--from takes ${FORMS}. \`sandlot images list\`, \`snapshots list\` and \`templates list\` show ids and names.`,
  })
}

/** Whether a name alone may have been meant: what looks like a description that was miswritten needs its kind before it. */
function mayBeName(text: string): boolean {
  const isBegun = ['debian', 'snapshot', 'template', ...SOURCE_KINDS].includes(parts(text).kind)
  const isFree = text !== '' && !isBegun && idKind(text) === undefined
  return isFree && likelyDescription(text) === undefined
}

/** What stands before the first colon, and behind it. */
function parts(text: string): { readonly kind: string; readonly rest: string } {
  const colon = text.indexOf(':')
  return { kind: text.slice(0, Math.max(colon, 0)), rest: text.slice(colon + 1) }
}

/** What a kind and a name or path of it describe. */
export function descriptionOf(kind: SourceKind, rest: string): ImageDescription {
  switch (kind) {
    case 'registry':
      return Image.registry(rest)
    case 'dockerfile':
      return Image.dockerfile(rest)
    case 'directory':
      return Image.directory(rest)
    case 'tar':
      return Image.tar(rest)
    case 'oci':
      return Image.oci(rest)
  }
}

function isSourceKind(text: string): text is SourceKind {
  return SOURCE_KINDS.some((kind) => kind === text)
}

function debian(rest: string): ImageDescription | undefined {
  const [suite = '', ...packages] = rest.split(',')
  const isRight = SUITE.test(suite) && packages.every((name) => PACKAGE.test(name))
  return isRight ? Image.debian(suite, packages) : undefined
}

/** A question before the rule, where the text looks like something. */
function guess(text: string): string {
  const meant = likely(text)
  return meant === undefined ? '' : `Did you mean ${meant}? `
}

function likely(text: string): string | undefined {
  if (idKind(text)) return undefined
  const described = likelyDescription(text)
  if (described !== undefined) return described
  if (/^(docker:\/\/)?[a-z0-9][a-z0-9./_-]*(:[\w.-]+)?(@sha256:[0-9a-f]+)?$/.test(text)) {
    return `registry:${text.replace(/^docker:\/\//, '')}`
  }
  return undefined
}

/** What looks like it whatever there may be of that name. */
function likelyDescription(text: string): string | undefined {
  const [first = ''] = text.split(',')
  if (KNOWN_SUITES.includes(first)) return `debian:${text}`
  if (text === 'debian') return 'debian:bookworm'
  const debianWords = /^debian[:/ ](.+)$/i.exec(text)?.[1]
  if (debianWords) return `debian:${debianWords.toLowerCase().replaceAll(/[\s,]+/g, ',')}`
  if (/(^|\/)(Dockerfile|Containerfile)[^/]*$/i.test(text)) return `dockerfile:${text}`
  if (/\.(tar|tgz|tar\.(gz|zst))$/.test(text)) return `tar:${text}`
  if (/^\.{0,2}\//.test(text) || text === '.') return `directory:${text}`
  return undefined
}
