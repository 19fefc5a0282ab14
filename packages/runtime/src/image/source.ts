import { createHash } from 'node:crypto'
import { type ImageSource, imageSource } from '@sandlot/protocol'
import { sourceInvalid } from './image-error.ts'
import { imageLimits } from './limits.ts'

export type SourceOf<K extends ImageSource['kind']> = Extract<ImageSource, { kind: K }>

/** Grows when the same source would give another image than before. */
const BUILD_FORMAT = 1

/** Checks a source and brings it into its one form. Fails with `image_source_invalid`. */
export function normalizedSource(input: ImageSource): ImageSource {
  const parsed = imageSource.safeParse(input)
  if (!parsed.success) {
    const problem = parsed.error.issues[0]
    throw sourceInvalid(
      `This is not an image source: ${problem?.path.join('.') ?? ''} ${problem?.message ?? ''}.`,
      'Use debian with a suite and package names, or directory, tar or oci with the digest of a blob.',
    )
  }
  const source = parsed.data
  switch (source.kind) {
    case 'debian':
      return checkedDebian(source)
    case 'directory':
    case 'tar':
    case 'oci':
      return checkedBlob(source)
    default:
      throw notYet(source.kind)
  }
}

/** Sources with the same key give the same image. 64 hexadecimal digits. */
export function sourceKey(normalized: ImageSource): string {
  const text = JSON.stringify([BUILD_FORMAT, normalized.kind, ...fieldsOf(normalized)])
  return createHash('sha256').update(text).digest('hex')
}

function fieldsOf(normalized: ImageSource): readonly string[] {
  switch (normalized.kind) {
    case 'debian':
      return [normalized.suite, ...normalized.packages]
    case 'directory':
    case 'tar':
    case 'oci':
      return [normalized.blob]
    default:
      throw notYet(normalized.kind)
  }
}

function notYet(kind: string): Error {
  return sourceInvalid(
    `This daemon can't build a source of kind ${kind}.`,
    'Use debian, directory, tar or oci.',
  )
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

function checkedBlob(source: SourceOf<'directory' | 'tar' | 'oci'>): ImageSource {
  if (/^sha256:[0-9a-f]{64}$/.test(source.blob)) return source
  throw sourceInvalid(
    `${JSON.stringify(source.blob)} is not the digest of a blob.`,
    'A digest is sha256: and 64 hexadecimal digits in lower case.',
  )
}
