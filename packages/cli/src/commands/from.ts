/** What `--from` may say. */
import { idKind, SandlotError } from '@sandlot/protocol'
import { Image, type ImageLike } from 'sandlot'

const IDS: readonly unknown[] = ['image', 'snapshot', 'template']
const SUITE = /^[a-z][a-z-]*$/
const PACKAGE = /^[a-z0-9][a-z0-9.+-]+$/
/** Names that people know without thinking of where they come from. */
const KNOWN_SUITES = ['bullseye', 'bookworm', 'trixie', 'forky', 'sid', 'stable', 'testing']

const FORMS =
  'an id, debian:SUITE[,PACKAGE…], registry:NAME, dockerfile:PATH, directory:PATH, tar:PATH or oci:PATH'

/**
 * An id of the daemon's, or a description in short.
 * @throws SandlotError `invalid_request` with what was meant, as far as that can be told
 */
export function parseFrom(text: string): ImageLike {
  if (IDS.includes(idKind(text))) return text
  const colon = text.indexOf(':')
  const described =
    colon < 0 ? undefined : descriptionOf(text.slice(0, colon), text.slice(colon + 1))
  if (described) return described
  throw new SandlotError('invalid_request', `--from ${text} is nothing to start from`, {
    hint: `${guess(text)}--from takes ${FORMS}.`,
  })
}

function descriptionOf(kind: string, rest: string): ImageLike | undefined {
  if (rest === '') return undefined
  switch (kind) {
    case 'debian':
      return debian(rest)
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
    default:
      return undefined
  }
}

function debian(rest: string): ImageLike | undefined {
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
  const [first = ''] = text.split(',')
  if (KNOWN_SUITES.includes(first)) return `debian:${text}`
  const debianWords = /^debian[:/ ](.+)$/i.exec(text)?.[1]
  if (debianWords)
    return `debian:${debianWords
      .toLowerCase()
      .split(/[\s,]+/)
      .join(',')}`
  if (/(^|\/)(Dockerfile|Containerfile)[^/]*$/i.test(text)) return `dockerfile:${text}`
  if (/\.(tar|tgz|tar\.(gz|zst))$/.test(text)) return `tar:${text}`
  if (/^\.{0,2}\//.test(text) || text === '.') return `directory:${text}`
  if (/^(docker:\/\/)?[a-z0-9][a-z0-9./_-]*(:[\w.-]+)?(@sha256:[0-9a-f]+)?$/.test(text)) {
    return `registry:${text.replace(/^docker:\/\//, '')}`
  }
  return undefined
}
